#include "data/formats/images/look_at_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"

namespace lockstep::data {
namespace {

// Reads the first `bytes`, or all if the file has fewer.
Status read_head_of(int fd, size_t bytes, std::vector<uint8_t>& out) {
  out.resize(bytes);
  const ssize_t got = read_at(fd, 0, bytes, out.data());
  if (got < 0) return bad("cannot be read: " + errno_text(errno));
  out.resize(static_cast<size_t>(got));
  return Status::ok();
}

// Calls read_head(bytes, out), which reads as above.
template <typename ReadHead>
Status look_at_open(int fd, IndexContent::Path& file, Extent& extent, PictureKind kind,
                    const ReadHead& read_head) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return bad("cannot be read: " + errno_text(errno));
  file.bytes = static_cast<uint64_t>(info.st_size);
  file.modified_ns = modified_ns(info);
  if (file.bytes > limits::kEncodedBytes)
    return bad("has " + std::to_string(file.bytes) + " bytes; an image may have at most " +
               std::to_string(limits::kEncodedBytes));
  extent.bytes = static_cast<uint32_t>(file.bytes);
  thread_local std::vector<uint8_t> head;
  LOCKSTEP_RETURN_IF_ERROR(read_head(std::min<size_t>(file.bytes, kImageHeadBytes), head));
  Status status = describe_image(head, extent, kind);
  if (status.is_ok() || file.bytes <= kImageHeadBytes) return status;
  LOCKSTEP_RETURN_IF_ERROR(read_head(file.bytes, head));
  return describe_image(head, extent, kind);
}

}  // namespace

Status describe_image(std::span<const uint8_t> bytes, Extent& extent, PictureKind kind) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info, kind == PictureKind::kMask
                                                      ? read_mask_info(bytes)
                                                      : read_image_info(bytes));
  extent.width = static_cast<uint16_t>(info.width);  // at most limits::kImageSide
  extent.height = static_cast<uint16_t>(info.height);
  extent.channels = static_cast<uint8_t>(info.channels);
  extent.codec = static_cast<uint8_t>(info.codec);
  return Status::ok();
}

Status look_at_image(const std::string& directory, IndexContent::Path& file, Extent& extent,
                     source::RemoteFiles* far, PictureKind kind) {
  const std::string path = directory + "/" + file.name;
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return {Code::kNoInput, "cannot open " + path + ": " + errno_text(errno)};
  const bool is_far = far != nullptr && far->has_only_place(path);
  Status status = look_at_open(
      fd.get(), file, extent, kind, [&](size_t bytes, std::vector<uint8_t>& out) -> Status {
        if (!is_far) return read_head_of(fd.get(), bytes, out);
        out.resize(bytes);
        return far->read(path, {file.bytes, file.modified_ns}, 0, bytes, out.data());
      });
  if (status.is_ok()) return status;
  const Status named = about(path, status);
  return {named.code(), named.message() + "; repair the file or remove it"};
}

}  // namespace lockstep::data
