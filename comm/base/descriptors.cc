#include "comm/base/descriptors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep {
namespace {

// `write` takes what is left, and gives how much of it was written.
template <typename Write>
bool write_pieces(std::string_view content, const Write& write) {
  while (!content.empty()) {
    const ssize_t n = write(content);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;  // else the loop would never end
    if (n <= 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

size_t most_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1'024;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

ssize_t read_at(int fd, uint64_t offset, size_t bytes, void* out) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd, static_cast<char*>(out) + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

bool write_all(int fd, std::string_view content) {
  return write_pieces(
      content, [fd](std::string_view left) { return ::write(fd, left.data(), left.size()); });
}

bool write_all_at(int fd, std::string_view content, int64_t at) {
  const char* const begin = content.data();
  return write_pieces(content, [=](std::string_view left) {
    return ::pwrite(fd, left.data(), left.size(), at + (left.data() - begin));
  });
}

}  // namespace lockstep
