// Preloaded into a worker: the network flips one bit. The bytes that recv() gives are counted, and
// one bit of the byte with number LOCKSTEP_TEST_FLIP_AT is wrong, in the first process that gets so
// far: it makes the file LOCKSTEP_TEST_FLIPPED. Only data connections of workers receive with
// recv().
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

std::atomic<uint64_t> received{0};

uint64_t flip_at() {
  const char* at = std::getenv("LOCKSTEP_TEST_FLIP_AT");
  return at == nullptr ? UINT64_MAX : std::strtoull(at, nullptr, 10);
}

bool is_first() {
  const char* path = std::getenv("LOCKSTEP_TEST_FLIPPED");
  const int made = path == nullptr ? -1 : ::open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return made >= 0 && ::close(made) == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t recv(int fd, void* data, size_t bytes,
                                                               int flags) {
  using Receive = ssize_t (*)(int, void*, size_t, int);
  static const auto real = reinterpret_cast<Receive>(::dlsym(RTLD_NEXT, "recv"));
  static const uint64_t at = flip_at();
  const ssize_t got = real(fd, data, bytes, flags);
  if (got <= 0 || (flags & MSG_PEEK) != 0) return got;
  const uint64_t before = received.fetch_add(static_cast<uint64_t>(got));
  if (at >= before && at < before + static_cast<uint64_t>(got) && is_first())
    static_cast<unsigned char*>(data)[at - before] ^= 4;
  return got;
}
