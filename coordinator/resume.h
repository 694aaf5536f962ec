// Where a run goes on from: the newest checkpoint of the surviving lineage that verifies.
//
// A checkpoint counts if the journal has the hash of its manifest, or, found only on disk, if the
// ledger row of its generation covers its step and was not rolled back (PROTOCOL.md, Checkpoints
// and lineage). What comes after it leaves the lineage, in one journal entry.
//
// Thread-safety: free functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "coordinator/journal.h"
#include "coordinator/options.h"
#include "coordinator/state.h"
#include "worker/checkpoint/store.h"

namespace lockstep::coordinator {

// What may be resumed from, newest first. Pure.
std::vector<CheckpointInfo> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                       const JournalContents& contents);

// What comes after `step` applied steps. Pure.
Phase phase_after(Step step, const std::vector<EvalEntry>& evals, const Options& options);

struct ResumePlan {
  ResumePoint point;
  std::string path;                          // of the checkpoint; empty: from the initial weights
  std::vector<JournalEntry> entries;         // to commit with the new term
  std::vector<wire::StepRecords> handed_in;  // batches that the checkpoint carries
  Generation generation = 0;                 // that wrote it
};

// Lists and verifies below `directory`; a damaged one is logged and the one before is taken.
// kUsage when the run would end before where it stands.
Result<ResumePlan> plan_resume(const std::string& directory, const JournalContents& contents,
                               const Options& options, Logger& logger);

// The steps [from, plan.point.step) that no commit completed, because the last batches of some rank
// never came: from the batches of any rank in the journal and in the checkpoint.
Result<std::vector<StepEntry>> recover_steps(Journal& journal, const ResumePlan& plan,
                                             const JournalContents& contents);

}  // namespace lockstep::coordinator
