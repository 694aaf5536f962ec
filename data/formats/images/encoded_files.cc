#include "data/formats/images/encoded_files.h"

#include <unistd.h>

#include <utility>

#include "comm/base/descriptors.h"
#include "data/base/file_errors.h"
#include "data/files/inflate_cache.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kFilesKeptOpen = 64;

FileExtent where(const std::string& path, const Extent& extent, const IndexedPath& then) {
  return {/*fd=*/-1, path, extent.offset, extent.bytes, then.bytes, then.modified_ns};
}

Status read_into(const FileExtent& extent, std::vector<uint8_t>& out) {
  out.resize(extent.bytes);
  return read_extent(extent, out.data());
}

}  // namespace

Status read_wherever(source::RemoteFiles* far, const std::string& path, const Extent& extent,
                     const IndexedPath& then, std::vector<uint8_t>& out) {
  if (far == nullptr || !far->has_only_place(path))
    return read_into(where(path, extent, then), out);
  out.resize(extent.bytes);
  return far->read(path, {then.bytes, then.modified_ns}, extent.offset, extent.bytes, out.data());
}

EncodedFiles::EncodedFiles(const ExtentIndex& index, std::string directory,
                           std::shared_ptr<source::RemoteFiles> far,
                           std::map<size_t, std::string> copied)
    : index_(index),
      directory_(std::move(directory)),
      far_(std::move(far)),
      copied_(std::move(copied)),
      marks_(far_ == nullptr ? index.files() : 0),
      contents_(far_ == nullptr ? index.samples() : 0) {
  for (uint64_t i = 0; i < marks_.size(); ++i) marks_[i].store(index.mark(i));
  for (uint64_t i = 0; i < contents_.size(); ++i) contents_[i].store(index.extent(i).content);
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
  const std::string name = shown_name(path_of(extent), copied_, extent.file);
  return is_whole ? name : place_text(name, extent.offset);
}

void EncodedFiles::announce(const Extent& extent) const {
  if (far_ != nullptr) far_->announce(path_of(extent), extent.offset, extent.bytes);
}

FileExtent EncodedFiles::at(uint64_t i) const {
  const Extent& extent = index_.extent(i);
  FileExtent found = where(path_of(extent), extent, index_.file(extent.file));
  found.mark = &marks_[extent.file];
  found.content = &contents_[i];
  if (open_.empty()) return found;
  std::atomic<int>& kept = open_[extent.file];
  found.fd = kept.load();
  if (found.fd >= 0) return found;
  Descriptor fd(open_to_read(found.path));
  if (fd.get() < 0) return found;  // a read of the file reports why
  int none = -1;
  found.fd = kept.compare_exchange_strong(none, fd.get()) ? fd.release() : none;
  return found;
}

Status EncodedFiles::read(uint64_t i, std::vector<uint8_t>& out) const {
  if (far_ == nullptr) return read_into(at(i), out);
  const Extent& extent = index_.extent(i);
  return read_wherever(far_.get(), path_of(extent), extent, index_.file(extent.file), out);
}

}  // namespace lockstep::data
