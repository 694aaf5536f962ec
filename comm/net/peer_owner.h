// Which user has the other end of a connection on loopback. The kernel knows, and no program can
// pretend: a port that became free belongs to the program that bound it next.
//
// Source: sock_diag(7), a query for one socket by its addresses.
//
// Thread-safety: free functions without state.
#pragma once

#include <sys/types.h>

#include <optional>

namespace lockstep {

// Nothing if the connection leaves this machine, or if the kernel does not say (a container without
// netlink, an end that is gone).
std::optional<uid_t> owner_of_peer(int socket);

// True if it may be one of ours: its owner is our user or root, or is not known.
bool may_be_our_peer(int socket);

}  // namespace lockstep
