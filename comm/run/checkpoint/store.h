// Checkpoints in a directory (RUN_DIR/checkpoints), one subdirectory each:
//
//   step-0000001500-g2-m4/   model.safetensors      parameters and buffers
//                            optimizer.safetensors  only if there is optimizer state
//                            manifest.json
//   tmp-step-0000001500-g2-m4/   being written or deleted, or left by a crash; never read
//
// The writer writes under the tmp- name. It fsyncs each file, the manifest last, then the
// directory. One rename publishes the checkpoint. 10 digits and a fixed form make names sort by
// step.
//
// INVARIANTS
//  K1 After a crash at any point, a name step-* either does not exist or verifies.
//  K2 Writing one checkpoint never touches another one.
//  K3 An error leaves no tmp- directory of this writer behind, as far as the file system allows.
//  K4 Pruning deletes only the given names, and never one of the newest `keep` (at least 2).
//
// Errors: kNoInput if it does not exist. kBadData if it is damaged or does not fit the state.
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
#include "comm/run/checkpoint/file_ops.h"
#include "comm/run/checkpoint/held_state.h"
#include "comm/run/checkpoint/manifest.h"
#include "comm/run/checkpoint/state_tensor.h"

namespace lockstep {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";

struct CheckpointName {
  Step step = 0;
  Generation generation = 0;
  MemberId member = 0;
  bool is_after_edge = false;  // of a step with an edge: the state is the one after it
  auto operator<=>(const CheckpointName&) const = default;
};

CheckpointName name_of(const Manifest& manifest);
std::string checkpoint_name(const CheckpointName& name);
// Nothing unless checkpoint_name() makes exactly `text`.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view text);
// False for a name that is none of ours.
bool is_after_edge(std::string_view checkpoint);

// One complete checkpoint.
struct CheckpointInfo {
  std::string name;  // directory name
  std::string path;
  std::string manifest_sha256;  // of the bytes of manifest.json; the journal has it, too
  uint64_t bytes = 0;           // of all files named in the manifest, and of the manifest
  Manifest manifest;
};

// One directory step-*. A damaged one has a status instead of an info, so that it does not hide the
// others.
struct ListedCheckpoint {
  CheckpointName name;
  std::string path;
  Status status;
  CheckpointInfo info;  // valid if status.is_ok()
};
// Every directory step-* below `dir`, oldest first; empty if `dir` does not exist. Reads only the
// manifests.
Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& dir);

// Reads the manifest of one checkpoint directory and checks it against the directory's name.
Result<CheckpointInfo> read_checkpoint_info(const std::string& path);

// The SHA-256 of the manifest of the checkpoint `name` below `dir`, which another machine may have
// written a moment ago.
Result<std::string> see_manifest(const std::string& dir, const std::string& name);

// Reads everything and checks the sizes and SHA-256 of every file, the format, and the weights
// hash.
Result<CheckpointInfo> verify_checkpoint(const std::string& path, const AliveFn& alive = {});

// weights_hash() of the files' content, from their bytes, not from the manifest.
Result<std::string> hash_checkpoint(const std::string& path, bool all);

// Writes `state` as a new checkpoint, and fills in the files and hashes of `manifest`. If a
// directory of this name has the same state already, it stays.
Result<CheckpointInfo> write_checkpoint(FileOps& files, const std::string& dir,
                                        std::span<const StateTensor> state, Manifest manifest);

struct LoadedState {
  CheckpointInfo info;
  HeldState state;  // all that is not of the optimizer counts as parameter: files do not tell
};
// Reads the state of a checkpoint, whatever its tensors are, and checks the hash of every file on
// the way. Holds one copy of the state. kNoMemory if there is no memory for it.
Result<LoadedState> read_checkpoint(const std::string& path);

// Turns `error`, with which a worker read the checkpoint of a start, into the error that it
// reports. The coordinator had verified that checkpoint, so damage came since then. That is
// kInternal and no verdict on the run: the next term verifies again and takes an older checkpoint.
Status damaged_since(const Status& error);

// Deletes the checkpoints of `names` that are not among the newest `keep` (at least 2) complete
// ones. Ignores names that do not exist. Returns how many it deleted.
Result<int> prune_checkpoints(FileOps& files, const std::string& dir,
                              std::span<const std::string> names, uint32_t keep);

// Deletes the tmp-* directories that crashed writers of generations before `before` left. The
// writer of generation `before` calls it, possibly late, so the work of newer writers stays. The
// default deletes all, for when no process writes.
inline constexpr Generation kEveryGeneration = ~Generation{0};
Status remove_leftovers(FileOps& files, const std::string& dir,
                        Generation before = kEveryGeneration);

}  // namespace lockstep
