// Whether a checkpoint is what its manifest says. Each file is read twice, in order for its own
// hash and by names for that of the weights, with one piece in memory: who verifies, as a
// coordinator does, need not have room for the state.
#include <algorithm>
#include <vector>

#include "coordinator/checkpoint/store.h"
#include "coordinator/checkpoint/store_file.h"
#include "coordinator/checkpoint/weights_hash.h"

namespace lockstep {
namespace {

struct Hashes {
  WeightsHasher weights;
  WeightsHasher state;
};

// [0, bytes) in pieces: use(offset, bytes).
template <typename Use>
Status in_pieces(uint64_t bytes, const Use& use) {
  for (uint64_t at = 0; at < bytes; at += kCheckpointPieceBytes)
    LOCKSTEP_RETURN_IF_ERROR(use(at, std::min<uint64_t>(kCheckpointPieceBytes, bytes - at)));
  return Status::ok();
}

Status check_content(CheckpointFile& file, std::vector<std::byte>& room) {
  LOCKSTEP_RETURN_IF_ERROR(in_pieces(file.header().data_bytes, [&](uint64_t, uint64_t bytes) {
    return file.read(std::span(room).first(bytes));
  }));
  return file.check_hash();
}

Status hash_by_name(const CheckpointFile& file, const std::vector<WeightsHasher*>& hashers,
                    std::vector<std::byte>& room) {
  std::vector<SafetensorsEntry> tensors = file.header().tensors;
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const SafetensorsEntry& tensor : tensors) {
    for (WeightsHasher* hasher : hashers)
      hasher->begin_tensor(tensor.name, tensor.dtype, tensor.shape, tensor.end - tensor.begin);
    const Status hashed =
        in_pieces(tensor.end - tensor.begin, [&](uint64_t at, uint64_t bytes) -> Status {
          const auto piece = std::span(room).first(bytes);
          LOCKSTEP_RETURN_IF_ERROR(file.read_at(tensor.begin + at, piece));
          for (WeightsHasher* hasher : hashers) hasher->data(piece);
          return Status::ok();
        });
    if (!hashed.is_ok()) return hashed;
  }
  return Status::ok();
}

Status hash_files(const CheckpointInfo& info, Hashes& hashes, const AliveFn& alive) {
  std::vector<std::byte> room(kCheckpointPieceBytes);
  const auto hash = [&](const char* name, const std::vector<WeightsHasher*>& hashers) -> Status {
    for (const ManifestFile& listed : info.manifest.files) {
      if (listed.name != name) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(const auto file,
                                CheckpointFile::open(info.path + "/" + name, listed, alive));
      LOCKSTEP_RETURN_IF_ERROR(check_content(*file, room));
      LOCKSTEP_RETURN_IF_ERROR(hash_by_name(*file, hashers, room));
    }
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(hash(kModelFile, {&hashes.weights, &hashes.state}));
  hashes.state.begin_optimizer();
  return hash(kOptimizerFile, {&hashes.state});
}

// One model file, at most one of the optimizer, nothing else.
Status check_names(const CheckpointInfo& info) {
  size_t models = 0;
  size_t optimizers = 0;
  for (const ManifestFile& file : info.manifest.files) {
    models += file.name == kModelFile;
    optimizers += file.name == kOptimizerFile;
    if (file.name != kModelFile && file.name != kOptimizerFile)
      return damaged_checkpoint(info.path, "the manifest names an unknown file, " + file.name);
  }
  if (models == 0) return damaged_checkpoint(info.path, "the manifest names no model file");
  if (models > 1 || optimizers > 1)
    return damaged_checkpoint(info.path, "the manifest names a file twice");
  return Status::ok();
}

}  // namespace

Result<CheckpointInfo> verify_checkpoint(const std::string& path, const AliveFn& alive) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointInfo info, read_checkpoint_info(path));
  LOCKSTEP_RETURN_IF_ERROR(check_names(info));
  Hashes hashes;
  LOCKSTEP_RETURN_IF_ERROR(hash_files(info, hashes, alive));
  if (hashes.weights.finish() != info.manifest.weights_sha256 ||
      hashes.state.finish() != info.manifest.state_sha256)
    return damaged_checkpoint(path, "the weights do not have the hash that the manifest says");
  return info;
}

Result<std::string> hash_checkpoint(const std::string& path, bool all) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, read_checkpoint_info(path));
  LOCKSTEP_RETURN_IF_ERROR(check_names(info));
  Hashes hashes;
  LOCKSTEP_RETURN_IF_ERROR(hash_files(info, hashes, {}));
  return all ? hashes.state.finish() : hashes.weights.finish();
}

}  // namespace lockstep
