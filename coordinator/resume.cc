#include "coordinator/resume.h"

#include <algorithm>
#include <map>
#include <optional>

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

// It will be no better next time. Every other error may pass, or a newer program may know better.
bool is_lost(const Status& status) {
  return status.code() == Code::kBadData || status.code() == Code::kNoInput;
}

Result<ResumePlan> plan_from(const ListedCheckpoint& listed, Journal& journal,
                             const JournalContents& contents) {
  LOCKSTEP_RETURN_IF_ERROR(listed.status);
  LOCKSTEP_RETURN_IF_ERROR(verify_checkpoint(listed.path).status());
  ResumePlan plan;
  plan.path = listed.path;
  plan.point.step = listed.info.manifest.resume.step;
  plan.generation = listed.info.manifest.generation;
  plan.handed_in = listed.info.manifest.unacknowledged;
  if (find(contents, listed.info.name) == nullptr) {
    plan.entries.push_back(entry_of(listed, listed.info));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(plan.recovered, recover_steps(journal, plan, contents));
  return plan;
}

// The newest that can be taken; nothing when there is none at all.
Result<std::optional<ResumePlan>> choose(const std::vector<ListedCheckpoint>& found,
                                         Journal& journal, const JournalContents& contents,
                                         Logger& logger) {
  std::map<std::string, std::string> passed_over;  // name → why
  for (const ListedCheckpoint& listed : found) {
    auto plan = plan_from(listed, journal, contents);
    if (plan.is_ok()) return std::optional(std::move(plan).value());
    const Status status = plan.status();
    if (!is_lost(status)) {
      return status.with_context("checkpoint " + listed.path +
                                 " cannot be read now, and an older one would lose steps; nothing "
                                 "was changed, repair what follows and resume again");
    }
    logger.warn("checkpoint_damaged",
                "checkpoint " + listed.path + ": " + status.message() + "; an older one is tried");
    passed_over[checkpoint_name(listed.name)] = status.message();
  }
  std::string lost;
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.state != CheckpointState::kComplete) continue;
    const auto why = passed_over.find(entry.name);
    lost += (lost.empty() ? "" : "; ") + entry.name + ": " +
            (why == passed_over.end() ? "it is not there, or not the one that was journalled"
                                      : why->second);
  }
  if (lost.empty()) return std::optional<ResumePlan>();
  return Status(Code::kBadData,
                "none of the checkpoints that the journal has as complete can be resumed from (" +
                    lost + "); nothing was changed: bring one of them back and resume again, or " +
                    "begin anew in another --run-dir");
}

}  // namespace

std::vector<ListedCheckpoint> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                         const JournalContents& contents) {
  std::vector<ListedCheckpoint> found;
  for (auto it = on_disk.rbegin(); it != on_disk.rend(); ++it) {
    const CheckpointEntry* known = find(contents, checkpoint_name(it->name));
    const bool is_same = known == nullptr || !it->status.is_ok() ||
                         known->manifest_sha256 == it->info.manifest_sha256;
    const bool counts = known != nullptr
                            ? is_same && known->state != CheckpointState::kRolledBack
                            : lineage_contains(contents.ledger, it->name.generation, it->name.step);
    if (counts) found.push_back(*it);
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

Result<ResumePlan> plan_resume(const std::string& directory, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk, list_checkpoints(directory));
  LOCKSTEP_ASSIGN_OR_RETURN(auto chosen,
                            choose(candidates(on_disk, contents), journal, contents, logger));
  ResumePlan plan = chosen ? std::move(*chosen) : ResumePlan{};
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
    return Status(Code::kBadData, "the records of step " +
                                      std::to_string(complete + steps.size() + 1) +
                                      " are missing in the journal and in the checkpoint");
  }
  return steps;
}

}  // namespace lockstep::coordinator
