// The parts of a run from which one of its steps is computed again: the job, the records, and the
// checkpoints of the surviving lineage. The run may have undone steps because a loss in them was
// bad. Their records still exist, so they can be computed again too.
//
// Errors: kUsage while the run is going on, or for a step that the run never did. Otherwise the
// errors of the journal and the files.
//
// Thread-safety: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/run_lock.h"
#include "comm/run/plan/skip_set.h"
#include "coordinator/audit/audit.h"
#include "coordinator/journal/journal.h"

namespace lockstep {

class ReplaySource {
 public:
  // `step`, 0-based: the step to look into.
  static Result<std::unique_ptr<ReplaySource>> open(const std::string& run_dir, Step step);

  const std::string& run_dir() const { return run_dir_; }
  const wire::JobSpec& job() const { return job_; }
  const coordinator::RunOrder& order() const { return order_; }
  uint64_t total_steps() const;  // length of the run by its plan, for the schedule
  Step step() const { return step_; }

  // Checkpoints of the surviving lineage, readable or not, newest first. None is of a step after
  // step().
  const std::vector<ListedCheckpoint>& bases() const { return bases_; }
  // The checkpoint after `steps` applied steps. Null: there is no readable one.
  const CheckpointInfo* checkpoint_of(Step steps) const;

  // The journal's entries of the steps from `first` to step().
  Result<std::vector<coordinator::StepEntry>> recorded(Step first);
  // The first step that is not part of the run. If it is greater than step(), no step up to step()
  // was undone.
  Step undone_from() const { return kept_; }

  // The slots that these steps left out when the run did them.
  SkipSet skips_in(const std::vector<coordinator::StepEntry>& steps) const;
  std::vector<coordinator::SkipEntry> skip_entries_in(
      const std::vector<coordinator::StepEntry>& steps) const;
  // The skips of step(), whatever generation left the slots out first.
  std::vector<coordinator::SkipEntry> skips_of_step() const;
  // The evaluations of the surviving lineage, ascending by step.
  const std::vector<coordinator::EvalEntry>& evals() const { return evals_; }
  const std::map<std::string, std::string>& settings() const { return settings_; }
  // The slots of each rank in `generation`.
  Result<coordinator::SlotMapEntry> slot_map(Generation generation);

 private:
  ReplaySource() = default;

  Status find_undone(const coordinator::JournalContents& contents);

  std::string run_dir_;
  Step step_ = 0;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<coordinator::Journal> journal_;
  wire::JobSpec job_;
  coordinator::RunOrder order_;
  std::vector<ListedCheckpoint> bases_;
  std::vector<ListedCheckpoint> checkpoints_;
  std::vector<coordinator::SkipEntry> skips_;
  std::vector<coordinator::EvalEntry> evals_;
  std::map<std::string, std::string> settings_;
  Step kept_ = 0;                                  // number of steps in the surviving lineage
  std::map<Step, coordinator::StepEntry> undone_;  // the steps from kept_ to step_
};

}  // namespace lockstep
