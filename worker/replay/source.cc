#include "worker/replay/source.h"

#include <algorithm>
#include <iterator>

#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/state/skips.h"
#include "coordinator/term/resume.h"
#include "worker/session/start_files.h"

namespace lockstep {

Result<std::unique_ptr<ReplaySource>> ReplaySource::open(const std::string& run_dir, Step step) {
  std::unique_ptr<ReplaySource> source(new ReplaySource);
  source->run_dir_ = run_dir;
  source->step_ = step;
  LOCKSTEP_ASSIGN_OR_RETURN(source->job_, read_job(run_dir));  // first: it checks who may write
  const std::string journal = journal_path(run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(source->lock_, RunLock::take_to_read(journal));
  LOCKSTEP_ASSIGN_OR_RETURN(source->journal_, coordinator::read_sqlite_journal(journal));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto contents, source->journal_->load());
  LOCKSTEP_ASSIGN_OR_RETURN(source->order_, coordinator::order_of(contents.identity));
  const auto count = [&](const auto& entry) { source->kept_ = entry.step + 1; };
  LOCKSTEP_RETURN_IF_ERROR(source->journal_->visit_steps(step, coordinator::kNoStep, count));
  if (source->kept_ == 0) LOCKSTEP_RETURN_IF_ERROR(source->journal_->visit_steps(0, step, count));
  source->skips_ = contents.skips;
  source->evals_ = contents.evals;
  source->settings_ = contents.settings;
  LOCKSTEP_RETURN_IF_ERROR(source->find_undone(contents));
  if (source->kept_ <= step && !source->undone_.contains(step)) {
    return Status(Code::kUsage, "the run has " + std::to_string(source->kept_) +
                                    " steps, counted from 1; step " + std::to_string(step + 1) +
                                    " is not among them");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk,
                            list_checkpoints(rundir::file_in(run_dir, rundir::kCheckpoints)));
  source->checkpoints_ = coordinator::candidates(on_disk, contents);
  for (const ListedCheckpoint& listed : source->checkpoints_) {
    if (listed.name.step <= step) source->bases_.push_back(listed);
  }
  return source;
}

// Takes the entry of each step's newest generation.
Status ReplaySource::find_undone(const coordinator::JournalContents& contents) {
  if (kept_ > step_) return Status::ok();
  for (const coordinator::GenerationEntry& entry : contents.generations) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto batches,
                              journal_->batches(entry.generation, kept_, step_ + 1));
    for (const coordinator::RecordsEntry& batch : batches) {
      for (const wire::StepRecord& record : batch.records) {
        if (record.step() < kept_ || record.step() > step_) continue;
        undone_[record.step()] = coordinator::step_entry(record, entry.generation);
      }
    }
  }
  return Status::ok();
}

uint64_t ReplaySource::total_steps() const {
  return lockstep::total_steps(order_.shape, job_.train().epochs(), job_.train().max_steps());
}

const CheckpointInfo* ReplaySource::checkpoint_of(Step steps) const {
  const auto it = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                               [steps](const ListedCheckpoint& listed) {
                                 return listed.status.is_ok() && listed.name.step == steps;
                               });
  return it == checkpoints_.end() ? nullptr : &it->info;
}

Result<std::vector<coordinator::StepEntry>> ReplaySource::recorded(Step first) {
  std::vector<coordinator::StepEntry> steps;
  LOCKSTEP_RETURN_IF_ERROR(
      journal_->visit_steps(first, step_ + 1, [&](const auto& entry) { steps.push_back(entry); }));
  for (const auto& [step, entry] : undone_) {
    if (step >= first) steps.push_back(entry);
  }
  if (steps.size() == step_ + 1 - first) return steps;
  return Status(Code::kBadData, "the journal does not have all steps from " +
                                    std::to_string(first + 1) + " to " + std::to_string(step_ + 1));
}

SkipSet ReplaySource::skips_in(const std::vector<coordinator::StepEntry>& steps) const {
  SkipSet set;
  for (const coordinator::SkipEntry& skip : skip_entries_in(steps))
    set.add(skip.step, skip.slots.begin, skip.slots.end);
  return set;
}

std::vector<coordinator::SkipEntry> ReplaySource::skip_entries_in(
    const std::vector<coordinator::StepEntry>& steps) const {
  std::vector<coordinator::SkipEntry> found;
  for (const coordinator::StepEntry& entry : steps)
    for (const coordinator::SkipEntry& skip : skips_)
      if (skip.step == entry.step && coordinator::holds_in(skip, entry.generation))
        found.push_back(skip);
  return found;
}

std::vector<coordinator::SkipEntry> ReplaySource::skips_of_step() const {
  std::vector<coordinator::SkipEntry> found;
  std::copy_if(skips_.begin(), skips_.end(), std::back_inserter(found),
               [this](const coordinator::SkipEntry& skip) { return skip.step == step_; });
  return found;
}

Result<coordinator::SlotMapEntry> ReplaySource::slot_map(Generation generation) {
  return journal_->slot_map(generation);
}

}  // namespace lockstep
