// Descriptors of a process: their limit, the ownership of one, and reading and writing through one.
//
// Thread-safety: allow_many_descriptors() is for the start of a program; the others are free
// functions without state. A Descriptor belongs to one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace lockstep {

// Raises the soft limit of open descriptors to the hard limit: every member is a socket. If the
// system refuses, accept() fails later and says so.
void allow_many_descriptors();

// The number of descriptors that this process may have open now.
size_t most_descriptors();

// Closes the descriptor it owns. Below 0 it owns none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Reads up to `bytes` bytes from `offset` on, fewer only at the end of the file. -1 and errno if
// the read fails.
ssize_t read_at(int fd, uint64_t offset, size_t bytes, void* out);

// Writes all of it, however little the kernel takes at a time: at the descriptor's place, or at
// `at`. False with errno.
bool write_all(int fd, std::string_view content);
bool write_all_at(int fd, std::string_view content, int64_t at);

}  // namespace lockstep
