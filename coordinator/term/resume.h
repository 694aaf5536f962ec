// Where a run goes on from: the newest checkpoint of the surviving lineage that verifies and whose
// steps are all recorded.
//
// A checkpoint counts if the journal has the hash of its manifest, or, found only on disk, if the
// ledger row of its generation covers its step and was not rolled back (PROTOCOL.md, Checkpoints
// and lineage). What comes after it leaves the lineage, in one journal entry. After the members
// have disagreed (corruption.h), none counts that is newer than the last check at which all agreed;
// none ever counts that has seen a step which is left out now (skips.h), or one with a bad loss.
//
// Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/alive.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "coordinator/checkpoint/store.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// Where the checkpoints lie, behind a seam: a directory in production, memory in the simulator.
class CheckpointShelf {
 public:
  virtual ~CheckpointShelf() = default;
  virtual Result<std::vector<ListedCheckpoint>> list() = 0;  // oldest first; store.h
  // Reads everything. kBadData, kNoInput: it is lost; any other error may pass.
  virtual Status verify(const ListedCheckpoint& checkpoint) = 0;
};

class DirectoryShelf final : public CheckpointShelf {
 public:
  // `alive` is called while a checkpoint is verified; may be empty.
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

// What may be resumed from, newest first. One whose manifest could not be read is among them, with
// its status: whether it may be passed over is decided where it would be taken. Pure.
std::vector<ListedCheckpoint> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                         const JournalContents& contents);

// Steps that no commit completed, because the last batches of some rank never came.
struct RecoveredSteps {
  std::vector<StepEntry> steps;       // ascending
  std::vector<RecordsEntry> batches;  // that only the checkpoint had
};

struct ResumePlan {
  ResumePoint point;
  std::string path;                   // of the checkpoint; empty: from the initial weights
  std::vector<JournalEntry> entries;  // to commit with the new term; none: nothing changes
};

// Lists and verifies; a checkpoint that is damaged or whose records are incomplete is logged and
// the one before is taken. Changes nothing.
// kUsage when the run would end before where it stands; kBadData when the journal has complete
// checkpoints and none can be taken; the error itself when a checkpoint cannot be read now, since
// going on from an older one would throw away steps that are perhaps all there.
Result<ResumePlan> plan_resume(CheckpointShelf& shelf, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger);
// The same for the checkpoints below `directory`.
Result<ResumePlan> plan_resume(const std::string& directory, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger);

// The steps before `manifest.resume` that are not complete in the journal. Every record says all
// that is equal on all ranks, so that one of any rank is enough if a surviving row covers its step;
// they come from the journal and from what the checkpoint carries. kBadData when one is missing.
Result<RecoveredSteps> recover_steps(Journal& journal, const Manifest& manifest,
                                     const JournalContents& contents);

}  // namespace lockstep::coordinator
