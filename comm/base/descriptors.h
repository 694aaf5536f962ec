// How many descriptors a process may have, and writing to one.
//
// Thread-safety: allow_many_descriptors() is for the start of a program; the others are free
// functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

// Raises the soft limit of open descriptors to the hard limit: every member is a socket. If the
// system refuses, accept() fails later and says so.
void allow_many_descriptors();

// The number of descriptors that this process may have open now.
size_t most_descriptors();

// Writes all of it, however little the kernel takes at a time: at the descriptor's place, or at
// `at`. False with errno.
bool write_all(int fd, std::string_view content);
bool write_all_at(int fd, std::string_view content, int64_t at);

}  // namespace lockstep
