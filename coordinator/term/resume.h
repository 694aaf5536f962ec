// Chooses where a run goes on: the newest checkpoint of the surviving lineage that verifies and
// whose steps are all recorded.
//
// Which checkpoints count (PROTOCOL.md, "Checkpoints and lineage"):
//   - the journal has the hash of its manifest
//   - or it is only on disk, and a row that was not rolled back covers its step
//   - if the members disagreed (corruption.h): it is not newer than the last agreement
//   - it has not seen a step that is left out now (skips.h), or one with a bad loss
// An end by the script stays, unless its steps are undone or the run is to be longer
// (script_end.h).
//
// Everything after the chosen checkpoint leaves the lineage, in one journal entry.
//
// Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/alive.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/checkpoint/store.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// The store of checkpoints: a directory in production, memory in the simulator.
class CheckpointShelf {
 public:
  virtual ~CheckpointShelf() = default;
  virtual Result<std::vector<ListedCheckpoint>> list() = 0;  // oldest first; store.h
  // Reads everything. kBadData and kNoInput mean that it is lost; any other error may pass.
  virtual Status verify(const ListedCheckpoint& checkpoint) = 0;
};

class DirectoryShelf final : public CheckpointShelf {
 public:
  // Calls `alive` while it verifies a checkpoint; may be empty.
  explicit DirectoryShelf(std::string directory, AliveFn alive = {})
      : directory_(std::move(directory)), alive_(std::move(alive)) {}
  Result<std::vector<ListedCheckpoint>> list() override { return list_checkpoints(directory_); }
  Status verify(const ListedCheckpoint& checkpoint) override {
    return verify_checkpoint(checkpoint.path, alive_).status();
  }

 private:
  std::string directory_;
  AliveFn alive_;
};

// The checkpoints that count, newest first. One with an unreadable manifest is among them, with its
// status: plan_resume() decides whether to pass it over. Pure.
std::vector<ListedCheckpoint> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                         const JournalContents& contents);

// Steps that no commit completed, because the last batches of some rank did not come.
struct RecoveredSteps {
  std::vector<StepEntry> steps;       // ascending
  std::vector<RecordsEntry> batches;  // only the checkpoint had them
  std::vector<EvalEntry> evals;       // the same
};

// A checkpoint that the journal has and that cannot be taken.
struct LostCheckpoint {
  std::string name;
  Step step = 0;
  std::string why;
};

struct ResumePlan {
  ResumePoint point;
  std::string path;                           // of the checkpoint; empty: from the initial weights
  std::vector<JournalEntry> entries;          // to commit with the new term; empty: nothing changes
  std::vector<std::string> fingerprint = {};  // of the numerics of the checkpoint's writer
};

// Lists and verifies. It logs a checkpoint that is damaged or has incomplete records, and takes the
// one before. If checkpoints newer than the one it takes are lost, the log and an event of the
// journal name them and count the steps that are trained again. Changes nothing.
//   kUsage    the run should end before the step where it stands
//   kBadData  the journal has complete checkpoints, and none is usable
//   others    a checkpoint is not readable now. An older one would throw away steps that may all be
//             there.
Result<ResumePlan> plan_resume(CheckpointShelf& shelf, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger);
// The same for the checkpoints below `directory`.
Result<ResumePlan> plan_resume(const std::string& directory, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger);

// The steps before `manifest.resume` that are not complete in the journal, from records in the
// journal and in the checkpoint. A record of any rank is enough if a surviving row covers its step,
// because it has all values that are equal on all ranks. kBadData if a record is missing.
Result<RecoveredSteps> recover_steps(Journal& journal, const Manifest& manifest,
                                     const JournalContents& contents);

}  // namespace lockstep::coordinator
