// Reads files by offset, and tells a file's time of change.
//
// Thread-safety: free functions from any thread; a Descriptor belongs to one thread at a time.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep::data {

// Closes a valid descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

inline int64_t modified_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Reads up to `bytes` bytes from `offset` on, fewer only at the end of the file. -1 and errno if
// the read fails.
ssize_t read_at(int fd, uint64_t offset, size_t bytes, uint8_t* out);

}  // namespace lockstep::data
