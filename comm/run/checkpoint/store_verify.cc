// Whether a checkpoint is what its manifest says: the hash of each file, and the one of the
// weights. Only one piece is in memory, since the coordinator, which verifies, may have no room for
// a state.
#include <algorithm>
#include <vector>

#include "comm/run/checkpoint/store.h"
#include "comm/run/checkpoint/store_file.h"
#include "comm/run/checkpoint/weights_hash.h"

namespace lockstep {
namespace {

// [0, bytes) in pieces: use(offset, bytes).
template <typename Use>
Status in_pieces(uint64_t bytes, const Use& use) {
  for (uint64_t at = 0; at < bytes; at += kCheckpointPieceBytes)
    LOCKSTEP_RETURN_IF_ERROR(use(at, std::min<uint64_t>(kCheckpointPieceBytes, bytes - at)));
  return Status::ok();
}

std::vector<SafetensorsEntry> by_name(std::vector<SafetensorsEntry> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return tensors;
}

// `read(tensor, at, piece)` fills each piece.
template <typename Read>
Status hash_tensors(const std::vector<SafetensorsEntry>& tensors, WeightsHasher* hasher,
                    std::vector<std::byte>& room, const Read& read) {
  for (const SafetensorsEntry& tensor : tensors) {
    const uint64_t bytes = tensor.end - tensor.begin;
    if (hasher != nullptr) hasher->begin_tensor(tensor.name, tensor.dtype, tensor.shape, bytes);
    Status hashed = in_pieces(bytes, [&](uint64_t at, uint64_t size) -> Status {
      const auto piece = std::span(room).first(size);
      LOCKSTEP_RETURN_IF_ERROR(read(tensor, at, piece));
      if (hasher != nullptr) hasher->data(piece);
      return Status::ok();
    });
    if (!hashed.is_ok()) return hashed;
  }
  return Status::ok();
}

// If the tensors lie in the order of their names, as in files of one dtype, one pass is enough.
Status hash_file(CheckpointFile& file, WeightsHasher& hasher, std::vector<std::byte>& room) {
  const std::vector<SafetensorsEntry>& tensors = file.header().tensors;
  const std::vector<SafetensorsEntry> named = by_name(tensors);
  const bool is_one_pass =
      std::equal(tensors.begin(), tensors.end(), named.begin(),
                 [](const auto& a, const auto& b) { return a.name == b.name; });
  LOCKSTEP_RETURN_IF_ERROR(
      hash_tensors(tensors, is_one_pass ? &hasher : nullptr, room,
                   [&file](const auto&, uint64_t, auto piece) { return file.read(piece); }));
  LOCKSTEP_RETURN_IF_ERROR(file.check_hash());
  if (is_one_pass) return Status::ok();
  return hash_tensors(named, &hasher, room, [&file](const auto& tensor, uint64_t at, auto piece) {
    return file.read_at(tensor.begin + at, piece);
  });
}

Result<WeightsHashes> hash_files(const CheckpointInfo& info, const AliveFn& alive) {
  std::vector<std::byte> room(kCheckpointPieceBytes);
  WeightsHasher hasher;
  const auto hash = [&](const char* name) -> Status {
    for (const ManifestFile& listed : info.manifest.files) {
      if (listed.name != name) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(const auto file,
                                CheckpointFile::open(info.path + "/" + name, listed, alive));
      LOCKSTEP_RETURN_IF_ERROR(hash_file(*file, hasher, room));
    }
    return Status::ok();
  };
  WeightsHashes hashes;
  LOCKSTEP_RETURN_IF_ERROR(hash(kModelFile));
  hashes.weights = hasher.so_far();
  hasher.begin_optimizer();
  LOCKSTEP_RETURN_IF_ERROR(hash(kOptimizerFile));
  hashes.state = hasher.finish();
  return hashes;
}

}  // namespace

Result<CheckpointInfo> verify_checkpoint(const std::string& path, const AliveFn& alive) {
  LOCKSTEP_ASSIGN_OR_RETURN(CheckpointInfo info, read_checkpoint_info(path));
  LOCKSTEP_RETURN_IF_ERROR(check_file_names(info.path, info.manifest));
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightsHashes hashes, hash_files(info, alive));
  if (hashes.weights != info.manifest.weights_sha256 || hashes.state != info.manifest.state_sha256)
    return damaged_checkpoint(path, "the weights do not have the hash in the manifest");
  return info;
}

Result<std::string> hash_checkpoint(const std::string& path, bool all) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo info, read_checkpoint_info(path));
  LOCKSTEP_RETURN_IF_ERROR(check_file_names(info.path, info.manifest));
  LOCKSTEP_ASSIGN_OR_RETURN(WeightsHashes hashes, hash_files(info, {}));
  return std::move(all ? hashes.state : hashes.weights);
}

}  // namespace lockstep
