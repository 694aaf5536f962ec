#include "data/base/read_at.h"

#include <cerrno>

namespace lockstep::data {

ssize_t read_at(int fd, uint64_t offset, size_t bytes, uint8_t* out) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd, out + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace lockstep::data
