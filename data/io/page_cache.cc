#include "data/io/page_cache.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "comm/base/descriptors.h"

namespace lockstep::data {
namespace {

// Fails with EAGAIN where the path is not in memory. -1 too where the kernel is older than 5.12.
int open_if_cached(const std::string& path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_CACHED;
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
}

ssize_t read_now(int fd, uint8_t* out, uint64_t bytes, uint64_t offset) {
  const iovec piece{out, bytes};
  return ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
}

}  // namespace

std::optional<Status> read_if_cached(const FileExtent& extent, uint8_t* out) {
  const Descriptor own(extent.fd >= 0 ? -1 : open_if_cached(extent.path));
  const int fd = extent.fd >= 0 ? extent.fd : own.get();
  if (fd < 0) return std::nullopt;
  const ssize_t n = read_now(fd, out, extent.bytes, extent.offset);
  if (n < 0 || static_cast<uint64_t>(n) < extent.bytes) return std::nullopt;
  return unchanged(fd, extent, out);
}

bool begins_in_cache(const FileExtent& extent) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* mapped = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, extent.fd,
                        static_cast<off_t>(extent.offset / page * page));
  if (mapped == MAP_FAILED) return true;
  unsigned char is_resident = 1;
  (void)::mincore(mapped, page, &is_resident);
  ::munmap(mapped, page);
  return (is_resident & 1) != 0;
}

}  // namespace lockstep::data
