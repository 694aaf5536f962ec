// Preloaded into the processes of a run: what one of them sends over TCP is lost in silence, as on
// a link that swallows it. LOCKSTEP_TEST_MUTED is a file; while it holds the pid of a process, that
// process is mute. Workers of one machine exchange gradients over shared memory and go on.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/harness/preload.h"

namespace {

using lockstep::testing::real;

bool is_tcp(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return false;
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

bool is_mute(int fd) {
  const char* path = std::getenv("LOCKSTEP_TEST_MUTED");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "r");
  if (file == nullptr) return false;
  long pid = 0;
  const bool is_ours = std::fscanf(file, "%ld", &pid) == 1 && pid == ::getpid();
  std::fclose(file);
  return is_ours && is_tcp(fd);
}

}  // namespace

extern "C" {

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  if (is_mute(fd)) return static_cast<ssize_t>(size);
  return real<ssize_t (*)(int, const void*, size_t, int)>("send")(fd, bytes, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  if (!is_mute(fd)) {
    return real<ssize_t (*)(int, const struct msghdr*, int)>("sendmsg")(fd, message, flags);
  }
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) size += message->msg_iov[i].iov_len;
  return static_cast<ssize_t>(size);
}

}  // extern "C"
