// What a run left from which one of its steps can be computed again: the job, the records, and the
// checkpoints of the surviving lineage. Steps that the run has undone since, because a loss in them
// was bad, can be computed again too: their records are still there.
//
// Errors: kUsage while the run is going on, or for a step that it never did; otherwise as the
// journal and the files give them.
// Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/audit/audit.h"
#include "coordinator/checkpoint/store.h"
#include "coordinator/journal/journal.h"
#include "coordinator/run_dir/run_dir.h"
#include "data/order/skip_set.h"

namespace lockstep {

class ReplaySource {
 public:
  // Step `step`, 0-based, is the one to look into.
  static Result<std::unique_ptr<ReplaySource>> open(const std::string& run_dir, Step step);

  const std::string& run_dir() const { return run_dir_; }
  const wire::JobSpec& job() const { return job_; }
  const coordinator::RunOrder& order() const { return order_; }
  uint64_t total_steps() const;  // length of the run, for the schedule
  Step step() const { return step_; }

  // Of the surviving lineage, whole or not, newest first; none is of a later step.
  const std::vector<ListedCheckpoint>& bases() const { return bases_; }
  // The checkpoint after `steps` applied steps, if there is a readable one; null: none.
  const CheckpointInfo* checkpoint_of(Step steps) const;

  // What was journalled of the steps from `first` to the one to look into.
  Result<std::vector<coordinator::StepEntry>> recorded(Step first);
  // The first step that is no part of the run; beyond the one to look into: there is none.
  Step undone_from() const { return kept_; }

  // The slots that these steps left out when they were done.
  data::SkipSet skips_in(const std::vector<coordinator::StepEntry>& steps) const;
  // Those of the one to look into, whatever generation left them out first.
  std::vector<coordinator::SkipEntry> skips_of_step() const;
  // Who had which slots in that generation.
  Result<coordinator::SlotMapEntry> slot_map(Generation generation);

 private:
  ReplaySource() = default;

  Status find_undone(const coordinator::JournalContents& contents);

  std::string run_dir_;
  Step step_ = 0;
  std::unique_ptr<coordinator::RunLock> lock_;
  std::unique_ptr<coordinator::Journal> journal_;
  wire::JobSpec job_;
  coordinator::RunOrder order_;
  std::vector<ListedCheckpoint> bases_;
  std::vector<ListedCheckpoint> checkpoints_;
  std::vector<coordinator::SkipEntry> skips_;
  Step kept_ = 0;                                  // steps of the surviving lineage
  std::map<Step, coordinator::StepEntry> undone_;  // from kept_ to the one to look into
};

}  // namespace lockstep
