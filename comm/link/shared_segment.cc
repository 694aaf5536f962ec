#include "comm/link/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "comm/base/file.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace lockstep::link {
namespace {

constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status segment_failed(const std::string& what) {
  return Status(Code::kInternal, "shared memory: " + what + ": " + errno_text(errno));
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::create(const char* name, size_t bytes) {
  Descriptor fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return segment_failed("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return segment_failed("a segment of " + std::to_string(bytes) + " bytes");
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return segment_failed("mapping " + std::to_string(bytes) + " bytes");
  std::shared_ptr<Segment> segment(new Segment(std::move(fd), data, bytes));
  if (fcntl(segment->fd(), F_ADD_SEALS, kSeals) != 0) {
    return segment_failed("sealing (F_SEAL_FUTURE_WRITE needs Linux 5.1)");
  }
  return segment;
}

Result<std::shared_ptr<Segment>> Segment::map_peer(Descriptor fd, size_t bytes) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return segment_failed("fstat of a peer's segment");
  if (bytes == 0 || static_cast<size_t>(info.st_size) != bytes) {
    return Status(Code::kRefused, "a peer's segment has " + std::to_string(info.st_size) +
                                      " bytes, announced were " + std::to_string(bytes));
  }
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return Status(Code::kRefused, "a peer's segment is not sealed; it could change under us");
  }
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED)
    return segment_failed("mapping a peer's " + std::to_string(bytes) + " bytes");
  return std::shared_ptr<Segment>(new Segment(std::move(fd), data, bytes));
}

Segment::~Segment() {
  munmap(data_, bytes_);
}

}  // namespace lockstep::link
