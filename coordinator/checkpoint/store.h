// Checkpoints in a directory (RUN_DIR/checkpoints), one subdirectory each:
//
//   step-0000001500-g2-m4/   model.safetensors      parameters and buffers
//                            optimizer.safetensors  only if there is optimizer state
//                            manifest.json
//   tmp-step-0000001500-g2-m4/   being written or deleted, or left by a crash; never read
//
// A checkpoint is written under its tmp- name: each file is fsynced, the manifest last, then the
// directory; one rename publishes it. 10 digits and a fixed form make names sort by step.
//
// INVARIANTS
//  K1 After a crash at any point, a name step-* either does not exist or verifies.
//  K2 Writing one checkpoint never touches another one.
//  K3 An error leaves no tmp- directory of ours behind (as far as the file system still lets us).
//  K4 Only names that were given are deleted, and never one of the newest `keep` (at least 2).
//
// Errors: kNoInput when it is not there; kBadData when it is damaged or does not fit the state;
// kInternal for I/O (disk full, ...). Messages name the path.
//
// Thread-safety: free functions without state; one writer per directory and generation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/alive.h"
#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "coordinator/checkpoint/file_ops.h"
#include "coordinator/checkpoint/manifest.h"
#include "coordinator/checkpoint/state_tensor.h"

namespace lockstep {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";

struct CheckpointName {
  Step step = 0;
  Generation generation = 0;
  MemberId member = 0;
  auto operator<=>(const CheckpointName&) const = default;
};

std::string checkpoint_name(const CheckpointName& name);
// Nothing unless `text` is exactly what checkpoint_name() makes.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view text);

// One complete checkpoint, as list and verify see it.
struct CheckpointInfo {
  std::string name;  // directory name
  std::string path;
  std::string manifest_sha256;  // of the bytes of manifest.json: what the journal holds
  uint64_t bytes = 0;           // of all files named in the manifest, and of the manifest
  Manifest manifest;
};

// Every directory step-* below `dir`, oldest first. A damaged one has a status instead of an info,
// so that one bad checkpoint does not hide the others. Reads manifests only; no hashing.
struct ListedCheckpoint {
  CheckpointName name;
  std::string path;
  Status status;
  CheckpointInfo info;  // valid if status.is_ok()
};
// Empty when `dir` does not exist.
Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& dir);

// Reads the manifest of one checkpoint directory and checks it against the directory's name.
Result<CheckpointInfo> read_checkpoint_info(const std::string& path);

// Reads everything: sizes and SHA-256 of every file, the format, and the weights hash.
Result<CheckpointInfo> verify_checkpoint(const std::string& path, const AliveFn& alive = {});

// weights_hash() of what the files hold, computed from their bytes (not from the manifest).
Result<std::string> hash_checkpoint(const std::string& path, bool all);

// Writes `state` as a new checkpoint. `manifest` comes filled but for files and hashes. A directory
// of this name that holds the same weights already is not written again.
Result<CheckpointInfo> write_checkpoint(FileOps& files, const std::string& dir,
                                        std::span<const StateTensor> state, Manifest manifest);

// Fills `state` from a checkpoint; every tensor must be there with the same shape and dtype, and
// no other. Every file's hash is checked on the way; after an error the content of `state` is
// undefined.
Result<CheckpointInfo> load_checkpoint(const std::string& path, std::span<const StateTensor> state);

// Deletes those of `names` that are not among the newest `keep` (at least 2) complete ones. Names
// that are not there any more are fine. Returns how many were deleted.
Result<int> prune_checkpoints(FileOps& files, const std::string& dir,
                              std::span<const std::string> names, uint32_t keep);

// Deletes what crashed writers of generations before `before` left (tmp-*). For the writer of
// `before`, however late it comes to it: a newer one's work in progress stays. Without it: all,
// when nobody writes.
inline constexpr Generation kEveryGeneration = ~Generation{0};
Status remove_leftovers(FileOps& files, const std::string& dir,
                        Generation before = kEveryGeneration);

}  // namespace lockstep
