// Reading one checkpoint front to back, each byte once: verify, hash and load differ only in where
// the tensors' bytes go.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/checkpoint/store.h"
#include "worker/checkpoint/weights_hash.h"

namespace lockstep {
namespace {

Status damaged(const std::string& path, const std::string& what) {
  return Status(Code::kBadData, "checkpoint file " + path + " is damaged: " + what);
}

// A file read in order; hashes what passes.
class HashedFile {
 public:
  static Result<std::unique_ptr<HashedFile>> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return Status(errno == ENOENT ? Code::kBadData : Code::kInternal,
                    "cannot open checkpoint file " + path + ": " + errno_text(errno));
    auto file = std::unique_ptr<HashedFile>(new HashedFile(fd, path));
    struct stat info;
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return damaged(path, "it is not a regular file");
    file->bytes_ = static_cast<uint64_t>(info.st_size);
    return file;
  }
  ~HashedFile() { ::close(fd_); }
  HashedFile(const HashedFile&) = delete;
  HashedFile& operator=(const HashedFile&) = delete;

  uint64_t bytes() const { return bytes_; }

  Status read(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::read(fd_, out.data() + done, out.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Status(Code::kInternal, "cannot read " + path_ + ": " + errno_text(errno));
      if (n == 0) return damaged(path_, "it ends too early");
      done += static_cast<size_t>(n);
    }
    hash_.update(out.data(), out.size());
    return Status::ok();
  }

  std::string sha256() { return to_hex(hash_.finish()); }

 private:
  HashedFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
  uint64_t bytes_ = 0;
  Sha256 hash_;
};

// Where the bytes of one tensor go, or the error that it should not be there.
using Destination = std::function<Result<std::span<std::byte>>(const SafetensorsEntry&)>;

// Reads one file of a checkpoint. Every tensor's bytes go to `place`.
Status read_tensors(const std::string& path, const ManifestFile& expected,
                    const Destination& place) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto file, HashedFile::open(path));
  if (file->bytes() != expected.bytes)
    return damaged(path, "it has " + std::to_string(file->bytes()) + " bytes, the manifest says " +
                             std::to_string(expected.bytes));
  std::string prefix(kSafetensorsPrefixBytes, '\0');
  if (file->bytes() < prefix.size()) return damaged(path, "it is shorter than its header");
  LOCKSTEP_RETURN_IF_ERROR(file->read(std::as_writable_bytes(std::span(prefix))));
  auto header_bytes = parse_safetensors_prefix(prefix, file->bytes());
  if (!header_bytes.is_ok()) return header_bytes.status().with_context(path);
  std::string text(*header_bytes, '\0');
  LOCKSTEP_RETURN_IF_ERROR(file->read(std::as_writable_bytes(std::span(text))));
  auto header = parse_safetensors_header(text, file->bytes());
  if (!header.is_ok()) return header.status().with_context(path);
  for (const SafetensorsEntry& entry : header->tensors) {
    auto out = place(entry);
    if (!out.is_ok()) return out.status().with_context(path);
    LOCKSTEP_RETURN_IF_ERROR(file->read(*out));
  }
  if (file->sha256() != expected.sha256)
    return damaged(path, "its SHA-256 differs from the manifest's");
  return Status::ok();
}

const ManifestFile* find_file(const Manifest& manifest, const std::string& name) {
  for (const ManifestFile& file : manifest.files)
    if (file.name == name) return &file;
  return nullptr;
}

StateSection section_of(const std::string& file) {
  // Parameters and buffers share a file and a name space; nothing here tells them apart.
  return file == kOptimizerFile ? StateSection::kOptimizer : StateSection::kParameter;
}

// A whole checkpoint in memory of its own.
struct LoadedState {
  std::vector<StateTensor> tensors;
  std::vector<std::unique_ptr<std::byte[]>> memory;
};

Result<LoadedState> read_state(const CheckpointInfo& info) {
  LoadedState state;
  for (const ManifestFile& file : info.manifest.files) {
    if (file.name != kModelFile && file.name != kOptimizerFile)
      return damaged(info.path, "the manifest names an unknown file, " + file.name);
    const Destination place = [&](const SafetensorsEntry& entry) -> Result<std::span<std::byte>> {
      const size_t bytes = entry.end - entry.begin;
      state.memory.push_back(std::make_unique<std::byte[]>(bytes));
      state.tensors.push_back({section_of(file.name), entry.name, entry.dtype, entry.shape,
                               state.memory.back().get(), bytes});
      return std::span(state.memory.back().get(), bytes);
    };
    LOCKSTEP_RETURN_IF_ERROR(read_tensors(info.path + "/" + file.name, file, place));
  }
  return state;
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  return std::string(dtype_safetensors_name(dtype)) + shape_text(shape);
}

// The tensors of `state` that belong into one file, by name; each may be taken once.
class Expected {
 public:
  Expected(std::span<const StateTensor> state, bool optimizer) {
    for (const StateTensor& tensor : state)
      if ((tensor.section == StateSection::kOptimizer) == optimizer) left_[tensor.name] = &tensor;
  }

  Result<std::span<std::byte>> take(const SafetensorsEntry& entry) {
    const auto it = left_.find(entry.name);
    if (it == left_.end())
      return Status(Code::kBadData, "tensor '" + entry.name + "' does not belong to this model");
    const StateTensor& tensor = *it->second;
    if (tensor.dtype != entry.dtype || tensor.shape != entry.shape)
      return Status(Code::kBadData, "tensor '" + entry.name + "' is " +
                                        describe(entry.dtype, entry.shape) +
                                        " in the checkpoint, but " +
                                        describe(tensor.dtype, tensor.shape) + " in the model");
    left_.erase(it);
    return std::span(tensor.data, tensor.bytes);
  }

  Status all_taken(const std::string& path) const {
    if (left_.empty()) return Status::ok();
    return Status(Code::kBadData, "checkpoint " + path + " lacks tensor '" + left_.begin()->first +
                                      "' and " + std::to_string(left_.size() - 1) + " others");
  }

 private:
  std::map<std::string, const StateTensor*> left_;
};

}  // namespace

Result<CheckpointInfo> verify_checkpoint(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointInfo info, read_checkpoint_info(path));
  if (find_file(info.manifest, kModelFile) == nullptr)
    return damaged(path, "the manifest names no model file");
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedState state, read_state(info));
  if (weights_hash(state.tensors, false) != info.manifest.weights_sha256 ||
      weights_hash(state.tensors, true) != info.manifest.state_sha256)
    return damaged(path, "the weights do not have the hash that the manifest says");
  return info;
}

Result<std::string> hash_checkpoint(const std::string& path, bool all) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, read_checkpoint_info(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedState state, read_state(info));
  return weights_hash(state.tensors, all);
}

Result<CheckpointInfo> load_checkpoint(const std::string& path,
                                       std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointInfo info, read_checkpoint_info(path));
  for (const char* name : {kModelFile, kOptimizerFile}) {
    Expected expected(state, section_of(name) == StateSection::kOptimizer);
    if (const ManifestFile* file = find_file(info.manifest, name)) {
      const Destination place = [&](const SafetensorsEntry& entry) { return expected.take(entry); };
      LOCKSTEP_RETURN_IF_ERROR(read_tensors(path + "/" + name, *file, place));
    }
    LOCKSTEP_RETURN_IF_ERROR(expected.all_taken(path));
  }
  if (weights_hash(state, true) != info.manifest.state_sha256)
    return damaged(path, "the weights do not have the hash that the manifest says");
  return info;
}

}  // namespace lockstep
