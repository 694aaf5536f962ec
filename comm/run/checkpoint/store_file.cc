#include "comm/run/checkpoint/store_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "comm/base/file.h"
#include "comm/run/checkpoint/store.h"

namespace lockstep {

Status damaged_checkpoint(const std::string& path, const std::string& what) {
  return Status(Code::kBadData, "checkpoint file " + path + " is damaged: " + what);
}

Status check_file_names(const std::string& path, const Manifest& manifest) {
  size_t models = 0;
  size_t optimizers = 0;
  for (const ManifestFile& file : manifest.files) {
    models += file.name == kModelFile;
    optimizers += file.name == kOptimizerFile;
    if (file.name != kModelFile && file.name != kOptimizerFile)
      return damaged_checkpoint(path, "the manifest names an unknown file, " + file.name);
  }
  if (models == 0) return damaged_checkpoint(path, "the manifest names no model file");
  if (models > 1 || optimizers > 1)
    return damaged_checkpoint(path, "the manifest names a file twice");
  return Status::ok();
}

Result<std::unique_ptr<CheckpointFile>> CheckpointFile::open(const std::string& path,
                                                             const ManifestFile& expected,
                                                             const AliveFn& alive) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Status(errno == ENOENT ? Code::kBadData : Code::kInternal,
                  "cannot open checkpoint file " + path + ": " + errno_text(errno));
  auto file = std::unique_ptr<CheckpointFile>(new CheckpointFile(fd, path, expected, alive));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return damaged_checkpoint(path, "it is not a regular file");
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes != expected.bytes)
    return damaged_checkpoint(path, "it has " + std::to_string(bytes) +
                                        " bytes, the manifest says " +
                                        std::to_string(expected.bytes));
  LOCKSTEP_RETURN_IF_ERROR(file->read_header());
  return file;
}

CheckpointFile::~CheckpointFile() {
  ::close(fd_);
}

Status CheckpointFile::read_header() {
  const uint64_t bytes = expected_.bytes;
  std::string prefix(safetensors::kPrefixBytes, '\0');
  if (bytes < prefix.size()) return damaged_checkpoint(path_, "it is shorter than its header");
  LOCKSTEP_RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(prefix))));
  auto header_bytes = safetensors::parse_prefix(prefix, bytes);
  if (!header_bytes.is_ok()) return header_bytes.status().with_context(path_);
  std::string text(*header_bytes, '\0');
  LOCKSTEP_RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(text))));
  auto header = parse_safetensors_header(text, bytes);
  if (!header.is_ok()) return header.status().with_context(path_);
  header_ = std::move(*header);
  return Status::ok();
}

Status CheckpointFile::read_from(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status(Code::kInternal, "cannot read " + path_ + ": " + errno_text(errno));
    if (n == 0) return damaged_checkpoint(path_, "it ends too early");
    done += static_cast<size_t>(n);
  }
  if (alive_) alive_();
  return Status::ok();
}

Status CheckpointFile::read(std::span<std::byte> out) {
  for (size_t done = 0; done < out.size(); done += kCheckpointPieceBytes) {
    const auto piece = out.subspan(done, std::min(kCheckpointPieceBytes, out.size() - done));
    LOCKSTEP_RETURN_IF_ERROR(read_from(at_, piece));
    hash_.update(piece.data(), piece.size());
    at_ += piece.size();
  }
  return Status::ok();
}

Status CheckpointFile::check_hash() {
  if (to_hex(hash_.finish()) == expected_.sha256) return Status::ok();
  return damaged_checkpoint(path_, "its SHA-256 differs from the manifest's");
}

Status CheckpointFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  return read_from(header_.data_begin + offset, out);
}

}  // namespace lockstep
