#include "data/io/file_extent.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/change_mark.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"

namespace lockstep::data {
namespace {

Status changed(const std::string& path, const std::string& how) {
  return {Code::kBadData, path + " " + how +
                              " since the data set was indexed. Put the old file back and resume "
                              "the run, or begin a new run in another run directory"};
}

// Once the file was touched, compares bytes known from an index or an earlier read. For other bytes
// it has to believe the mark.
Status not_rewritten(int fd, const FileExtent& extent, const struct stat& now, const uint8_t* out) {
  const uint64_t mark = change_mark(now);
  uint64_t then = 0;
  const bool is_first = extent.mark->compare_exchange_strong(then, mark);
  const bool is_known = is_first || (then & ~kTouchedMark) == mark;
  const bool is_same_file = is_known && !is_first && (then & kTouchedMark) == 0;
  const uint32_t was = extent.content->load(std::memory_order_relaxed);
  if (was != 0 && is_same_file) return Status::ok();
  const auto is = static_cast<uint32_t>(content_mark({out, extent.bytes}));
  const bool is_other = was != 0 ? is != was && has_change_marks(fd)
                                 : !is_known && is_rewritten(fd, extent.path, now, then);
  if (is_other) return changed(extent.path, "was written to, and got its old size and time again,");
  if (was == 0 && !is_known) extent.mark->store(mark | kTouchedMark);
  extent.content->store(is, std::memory_order_relaxed);
  return Status::ok();
}

}  // namespace

int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool may_pass(int error) {
  return error == EINTR || error == EAGAIN || error == EIO;
}

Status unchanged(int fd, const FileExtent& extent, const uint8_t* out) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return cannot_open(extent, errno);
  if (static_cast<uint64_t>(now.st_size) != extent.file_bytes ||
      modified_ns(now) != extent.modified_ns)
    return changed(extent.path, "was written to, or replaced,");
  return extent.mark == nullptr ? Status::ok() : not_rewritten(fd, extent, now, out);
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
  return unchanged(fd, extent, out);
}

Status read_extent(const FileExtent& extent, uint8_t* out) {
  if (extent.fd >= 0) return read_open_extent(extent.fd, extent, out);
  const Descriptor fd(open_to_read(extent.path));
  return fd.get() < 0 ? cannot_open(extent, errno) : read_open_extent(fd.get(), extent, out);
}

}  // namespace lockstep::data
