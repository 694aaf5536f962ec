#include "coordinator/resume.h"

#include <algorithm>
#include <map>

namespace lockstep::coordinator {
namespace {

const CheckpointEntry* find(const JournalContents& contents, const std::string& name) {
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

CheckpointEntry entry_of(const ListedCheckpoint& listed, const CheckpointInfo& info) {
  CheckpointEntry entry;
  entry.name = info.name;
  entry.step = listed.name.step;
  entry.generation = listed.name.generation;
  entry.member = listed.name.member;
  entry.manifest_sha256 = info.manifest_sha256;
  entry.weights_sha256 = info.manifest.weights_sha256;
  entry.bytes = info.bytes;
  return entry;
}

StepEntry entry_of(const wire::StepRecord& record, Generation generation) {
  StepEntry entry;
  entry.generation = generation;
  entry.step = record.step();
  entry.epoch = record.epoch();
  entry.samples = record.samples();
  entry.correct = record.correct();
  entry.loss = record.loss();
  entry.lr = record.lr();
  entry.skipped = record.skipped();
  entry.common_hash = record.common_hash();
  return entry;
}

std::string counted(uint64_t steps) {
  return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

}  // namespace

std::vector<CheckpointInfo> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                       const JournalContents& contents) {
  std::vector<CheckpointInfo> found;
  for (auto it = on_disk.rbegin(); it != on_disk.rend(); ++it) {
    if (!it->status.is_ok()) continue;
    const CheckpointEntry* known = find(contents, it->info.name);
    const bool counts = known != nullptr
                            ? known->state != CheckpointState::kRolledBack &&
                                  known->manifest_sha256 == it->info.manifest_sha256
                            : lineage_contains(contents.ledger, it->name.generation, it->name.step);
    if (counts) found.push_back(it->info);
  }
  return found;
}

Phase phase_after(Step step, const std::vector<EvalEntry>& evals, const Options& options) {
  const bool is_end = step >= options.total_steps;
  const bool is_epoch_end = step > 0 && data::plan_step(options.shape, step - 1).last_of_epoch;
  const bool is_known = std::any_of(evals.begin(), evals.end(),
                                    [step](const EvalEntry& e) { return e.step == step; });
  if (step > 0 && (is_end || is_epoch_end) && options.has_eval() && !is_known) return Phase::kEval;
  return is_end ? Phase::kEnd : Phase::kTrain;
}

Result<ResumePlan> plan_resume(const std::string& directory, const JournalContents& contents,
                               const Options& options, Logger& logger) {
  ResumePlan plan;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk, list_checkpoints(directory));
  for (const ListedCheckpoint& listed : on_disk) {
    if (!listed.status.is_ok()) {
      logger.warn("checkpoint_unreadable", listed.status.message());
    }
  }
  for (const CheckpointInfo& info : candidates(on_disk, contents)) {
    const auto verified = verify_checkpoint(info.path);
    if (!verified.is_ok()) {
      logger.warn("checkpoint_damaged", verified.status().message() + "; an older one is tried");
      continue;
    }
    plan.path = info.path;
    plan.point.step = info.manifest.resume.step;
    plan.generation = info.manifest.generation;
    plan.handed_in = info.manifest.unacknowledged;
    for (const ListedCheckpoint& listed : on_disk) {
      if (listed.path == info.path && find(contents, info.name) == nullptr) {
        plan.entries.push_back(entry_of(listed, info));
      }
    }
    break;
  }
  if (plan.point.step > options.total_steps) {
    return Status(Code::kUsage, "the run stands at step " + std::to_string(plan.point.step) +
                                    " and was asked to end after " + counted(options.total_steps) +
                                    ": give a larger train.max_steps or train.epochs");
  }
  plan.point.phase = phase_after(plan.point.step, contents.evals, options);
  if (!contents.ledger.empty()) {
    const std::string name = plan.path.substr(plan.path.find_last_of('/') + 1);
    plan.entries.push_back(RollbackEntry{plan.point, name, "resume"});
  }
  return plan;
}

Result<std::vector<StepEntry>> recover_steps(Journal& journal, const ResumePlan& plan,
                                             const JournalContents& contents) {
  Step complete = 0;
  LOCKSTEP_RETURN_IF_ERROR(journal.visit_steps(
      0, plan.point.step, [&](const StepEntry& entry) { complete = entry.step + 1; }));
  std::map<Step, StepEntry> found;
  const auto take = [&](const wire::StepRecord& record, Generation generation) {
    if (record.step() >= complete && record.step() < plan.point.step) {
      found.try_emplace(record.step(), entry_of(record, generation));
    }
  };
  for (const LedgerRow& row : contents.ledger) {
    if (row.rolled_back) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto batches,
                              journal.batches(row.generation, complete, plan.point.step));
    for (const RecordsEntry& batch : batches) {
      for (const wire::StepRecord& record : batch.records) {
        if (row.covers(record.step())) take(record, row.generation);
      }
    }
  }
  for (const wire::StepRecords& batch : plan.handed_in) {
    for (const wire::StepRecord& record : batch.records()) take(record, plan.generation);
  }
  std::vector<StepEntry> steps;
  for (auto& [step, entry] : found) {
    if (step != complete + steps.size()) break;
    steps.push_back(entry);
  }
  if (complete + steps.size() != plan.point.step) {
    return Status(Code::kInternal, "the records of step " +
                                       std::to_string(complete + steps.size() + 1) +
                                       " are missing in the journal and in the checkpoint");
  }
  return steps;
}

}  // namespace lockstep::coordinator
