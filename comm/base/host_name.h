// The names of this machine: its host name, which two machines may share, and ids that no two
// share.
//
// Thread-safety: any thread.
#pragma once

#include <string>

namespace lockstep {

std::string host_name();  // "localhost" if the machine has no name

// Drawn by the kernel at its start; "" if it cannot be read.
std::string boot_id();

// The id of the processes that see each other by pid: the boot id with the id of the pid namespace.
// Two containers of one machine differ in it. "" if it cannot be read.
std::string machine_id();

}  // namespace lockstep
