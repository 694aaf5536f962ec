// Where a run goes on from: the newest checkpoint of the surviving lineage that verifies and whose
// steps are all recorded.
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

// What may be resumed from, newest first. One whose manifest could not be read is among them, with
// its status: whether it may be passed over is decided where it would be taken. Pure.
std::vector<ListedCheckpoint> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                         const JournalContents& contents);

// What comes after `step` applied steps. Pure.
Phase phase_after(Step step, const std::vector<EvalEntry>& evals, const Options& options);

struct ResumePlan {
  ResumePoint point;
  std::string path;                          // of the checkpoint; empty: from the initial weights
  std::vector<JournalEntry> entries;         // to commit with the new term
  std::vector<wire::StepRecords> handed_in;  // batches that the checkpoint carries
  Generation generation = 0;                 // that wrote it
  std::vector<StepEntry> recovered;          // to commit after `entries`
};

// Lists and verifies below `directory`; one that is damaged or whose records are incomplete is
// logged and the one before is taken. Changes nothing.
// kUsage when the run would end before where it stands; kBadData when the journal has complete
// checkpoints and none can be taken; the error itself when a checkpoint cannot be read now, since
// going on from an older one would throw away steps that are perhaps all there.
Result<ResumePlan> plan_resume(const std::string& directory, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger);

// The steps [from, plan.point.step) that no commit completed, because the last batches of some rank
// never came: from the batches of any rank in the journal and in the checkpoint. kBadData when they
// are incomplete.
Result<std::vector<StepEntry>> recover_steps(Journal& journal, const ResumePlan& plan,
                                             const JournalContents& contents);

}  // namespace lockstep::coordinator
