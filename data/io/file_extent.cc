#include "data/io/file_extent.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"

namespace lockstep::data {
namespace {

Status changed(const std::string& path, const std::string& how) {
  return {Code::kBadData, path + " " + how +
                              " since the data set was indexed. Put the old file back and resume "
                              "the run, or begin a new run in another run directory"};
}

}  // namespace

int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool may_pass(int error) {
  return error == EINTR || error == EAGAIN || error == EIO;
}

Status unchanged(int fd, const FileExtent& extent) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return cannot_open(extent, errno);
  if (static_cast<uint64_t>(now.st_size) == extent.file_bytes &&
      modified_ns(now) == extent.modified_ns)
    return Status::ok();
  return changed(extent.path, "was written to, or replaced,");
}

Status cannot_read(const FileExtent& extent, uint64_t done, int error) {
  return {Code::kBadData, "cannot read " + place_text(extent.path, extent.offset + done) + ": " +
                              errno_text(error) +
                              "; is its disk failing, or its server gone? Resume the run when it "
                              "can be read"};
}

Status cannot_open(const FileExtent& extent, int error) {
  return changed(extent.path, "has gone (" + errno_text(error) + ")");
}

Status was_cut_off(const FileExtent& extent) {
  return changed(extent.path, "was cut off");
}

Status read_open_extent(int fd, const FileExtent& extent, uint8_t* out) {
  uint64_t done = 0;
  for (uint32_t failures = 0; done < extent.bytes;) {
    const ssize_t n =
        ::pread(fd, out + done, extent.bytes - done, static_cast<off_t>(extent.offset + done));
    if (n > 0) done += static_cast<uint64_t>(n);
    if (n == 0) return was_cut_off(extent);
    if (n >= 0 || errno == EINTR) continue;
    if (!may_pass(errno) || ++failures == limits::kReadAttempts)
      return cannot_read(extent, done, errno);
  }
  return unchanged(fd, extent);
}

Status read_extent(const FileExtent& extent, uint8_t* out) {
  if (extent.fd >= 0) return read_open_extent(extent.fd, extent, out);
  const Descriptor fd(open_to_read(extent.path));
  return fd.get() < 0 ? cannot_open(extent, errno) : read_open_extent(fd.get(), extent, out);
}

}  // namespace lockstep::data
