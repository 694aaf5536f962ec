#include "data/index/encoded_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "comm/base/file.h"
#include "data/index/file_errors.h"
#include "data/index/read_at.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kFilesKeptOpen = 64;

Status changed(const std::string& path, const std::string& how) {
  return {Code::kBadData, path + " " + how +
                              " since the data set was indexed. Put back what was there and resume "
                              "the run, or begin a new run in another run directory"};
}

// Not blocking: a FIFO that somebody left there must not hang.
int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

Status cannot_open(const std::string& path) {
  return changed(path, "has gone (" + errno_text(errno) + ")");
}

}  // namespace

Status read_extent(int fd, const std::string& path, const Extent& extent, const IndexedPath& then,
                   std::vector<uint8_t>& out) {
  out.resize(extent.bytes);
  const ssize_t got = read_at(fd, extent.offset, out.size(), out.data());
  if (got < 0)
    return {Code::kBadData, "cannot read " + path + ": " + errno_text(errno) +
                                "; is its disk failing, or its server gone? Resume the run when "
                                "it can be read"};
  if (static_cast<size_t>(got) < out.size()) return changed(path, "was cut off");
  struct stat now {};  // after the bytes: a write that came before they were read is seen
  if (::fstat(fd, &now) != 0) return cannot_open(path);
  if (static_cast<uint64_t>(now.st_size) != then.bytes || modified_ns(now) != then.modified_ns)
    return changed(path, "was written to, or replaced,");
  return Status::ok();
}

Status open_and_read(const std::string& path, const Extent& extent, const IndexedPath& then,
                     std::vector<uint8_t>& out) {
  const Descriptor fd(open_to_read(path));
  return fd.get() < 0 ? cannot_open(path) : read_extent(fd.get(), path, extent, then, out);
}

Status read_wherever(source::RemoteFiles* far, const std::string& path, const Extent& extent,
                     const IndexedPath& then, std::vector<uint8_t>& out) {
  if (far == nullptr || !far->has_only_place(path)) return open_and_read(path, extent, then, out);
  out.resize(extent.bytes);
  return far->read(path, {then.bytes, then.modified_ns}, extent.offset, extent.bytes, out.data());
}

EncodedFiles::EncodedFiles(const ExtentIndex& index, std::string directory,
                           std::shared_ptr<source::RemoteFiles> far)
    : index_(index), directory_(std::move(directory)), far_(std::move(far)) {
  if (index.files() > kFilesKeptOpen) return;
  open_ = std::vector<std::atomic<int>>(index.files());
  for (std::atomic<int>& fd : open_) fd.store(-1);
}

EncodedFiles::~EncodedFiles() {
  for (const std::atomic<int>& fd : open_)
    if (fd.load() >= 0) ::close(fd.load());
}

std::string EncodedFiles::path_of(const Extent& extent) const {
  return directory_ + "/" + std::string(index_.file_name(extent.file));
}

std::string EncodedFiles::name_of(const Extent& extent) const {
  const bool is_whole = extent.bytes == index_.file(extent.file).bytes;
  return is_whole ? path_of(extent) : place_text(path_of(extent), extent.offset);
}

void EncodedFiles::announce(const Extent& extent) const {
  if (far_ != nullptr) far_->announce(path_of(extent), extent.offset, extent.bytes);
}

Status EncodedFiles::read(const Extent& extent, std::vector<uint8_t>& out) const {
  const std::string path = path_of(extent);
  const IndexedPath& then = index_.file(extent.file);
  if (far_ != nullptr) return read_wherever(far_.get(), path, extent, then, out);
  if (open_.empty()) return open_and_read(path, extent, then, out);
  std::atomic<int>& kept = open_[extent.file];
  if (const int fd = kept.load(); fd >= 0) return read_extent(fd, path, extent, then, out);
  Descriptor fd(open_to_read(path));
  if (fd.get() < 0) return cannot_open(path);
  LOCKSTEP_RETURN_IF_ERROR(read_extent(fd.get(), path, extent, then, out));
  int none = -1;
  if (kept.compare_exchange_strong(none, fd.get())) fd.release();
  return Status::ok();
}

}  // namespace lockstep::data
