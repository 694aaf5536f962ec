#include "coordinator/term/resume.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "comm/base/counted.h"
#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "coordinator/state/corruption.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/state/skips.h"

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

// A retry would find the same. Every other error may pass, or a newer program may know better.
bool is_lost(const Status& status) {
  return status.code() == Code::kBadData || status.code() == Code::kNoInput;
}

// The batches that the writer of a checkpoint held and the journal does not, by the rows of the
// lineage that cover their steps.
std::vector<RecordsEntry> handed_in(const Manifest& manifest, const JournalContents& contents) {
  const auto last = contents.batches.find(manifest.member);
  const uint64_t known = last == contents.batches.end() ? 0 : last->second;
  std::vector<RecordsEntry> batches;
  for (const wire::StepRecords& batch : manifest.unacknowledged) {
    if (batch.batch() <= known) continue;
    for (const wire::StepRecord& record : batch.records()) {
      const LedgerRow* row = row_of(contents.ledger, record.step());
      if (row == nullptr || record.step() >= manifest.resume.step) continue;
      const bool is_new = batches.empty() || batches.back().batch != batch.batch() ||
                          batches.back().generation != row->generation;
      if (is_new) batches.push_back({row->generation, manifest.member, batch.batch(), {}});
      batches.back().records.push_back(record);
    }
  }
  return batches;
}

// The evaluations in these batches.
std::vector<EvalEntry> evals_in(const Manifest& manifest, const JournalContents& contents) {
  std::map<Step, EvalEntry> found;
  for (const wire::StepRecords& batch : manifest.unacknowledged) {
    for (const wire::EvalReport& eval : batch.evals()) {
      if (eval.step() == 0 || eval.step() > manifest.resume.step || eval.samples() == 0) continue;
      const LedgerRow* row = row_of(contents.ledger, eval.step() - 1);
      const bool is_known =
          std::any_of(contents.evals.begin(), contents.evals.end(),
                      [&](const EvalEntry& known) { return known.step == eval.step(); });
      if (row != nullptr && !is_known)
        found.try_emplace(eval.step(), eval_entry(eval, row->generation));
    }
  }
  std::vector<EvalEntry> evals;
  for (auto& [step, entry] : found) evals.push_back(entry);
  return evals;
}

// A checkpoint that can be resumed from; the default: the initial weights.
struct Chosen {
  Step step = 0;
  std::string path;
  std::vector<JournalEntry> entries;
  RecoveredSteps recovered;
  std::string spoilt;  // by what: its state is none to go on from
  std::vector<std::string> fingerprint;
  std::vector<LostCheckpoint> lost = {};  // newer ones that the journal has
  Step ends_at = 0;                       // as in its manifest
  bool is_before_spoilt = false;          // a newer one was passed over because of a loss
};

// The first bad loss among steps that were never complete, so that no coordinator has judged them.
// Empty: none is bad.
Result<std::string> find_bad_loss(Journal& journal, const std::vector<StepEntry>& steps,
                                  const Options& options) {
  if (steps.empty()) return std::string();
  const Step first = steps.front().step;
  const uint32_t turns = options.shape.turns;
  const Step window = (kLossWindow + limits::kSkips) * turns;  // of which some may be left out
  LossWatch watch;
  LOCKSTEP_RETURN_IF_ERROR(
      journal.visit_steps(first - std::min(first, window), first,
                          [&](const StepEntry& entry) { remember_loss(watch, entry, turns); }));
  for (const StepEntry& step : steps) {
    if (const auto what = wrong_with_loss(watch, options.job.train(), step, turns)) {
      return "it has seen step " + std::to_string(step.step + 1) + ": " + *what;
    }
    remember_loss(watch, step, turns);
  }
  return std::string();
}

Result<Chosen> check(const ListedCheckpoint& listed, CheckpointShelf& shelf, Journal& journal,
                     const JournalContents& contents, const Options& options) {
  LOCKSTEP_RETURN_IF_ERROR(listed.status);
  LOCKSTEP_RETURN_IF_ERROR(shelf.verify(listed));
  Chosen chosen{listed.info.manifest.resume.step,         listed.path, {}, {}, {},
                listed.info.manifest.numerics_fingerprint};
  // A checkpoint that was dropped and is still on the disk counts again.
  const CheckpointEntry* known = find(contents, listed.info.name);
  if (known == nullptr || known->state == CheckpointState::kDropped) {
    chosen.entries.push_back(entry_of(listed, listed.info));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(chosen.recovered,
                            recover_steps(journal, listed.info.manifest, contents));
  chosen.ends_at = listed.info.manifest.ends_at;
  LOCKSTEP_ASSIGN_OR_RETURN(chosen.spoilt, find_bad_loss(journal, chosen.recovered.steps, options));
  return chosen;
}

// Why a checkpoint was not taken, by name.
struct PassedOver {
  std::map<std::string, std::string> lost;
  std::set<std::string> spoilt;
};

// Whether the surviving lineage went through the state of a checkpoint. A cut at the very step
// where a generation began leaves no row of it. A checkpoint that it wrote there has the state that
// it began with.
bool is_of_lineage(const JournalContents& contents, Generation generation, Step step,
                   const CheckpointEntry* known) {
  if (lineage_contains(contents.ledger, generation, step)) return true;
  return known != nullptr && known->state == CheckpointState::kComplete &&
         std::any_of(contents.ledger.begin(), contents.ledger.end(), [&](const LedgerRow& row) {
           return row.generation == generation && row.rolled_back && row.first.step == step;
         });
}

// The checkpoints that the surviving lineage should have on disk by the journal, and that cannot be
// taken, ascending by step. With `after`, only checkpoints of more steps.
std::vector<LostCheckpoint> lost_after(std::optional<Step> after, const PassedOver& passed,
                                       const JournalContents& contents) {
  std::vector<LostCheckpoint> lost;
  const auto limit = newest_sound(contents);
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.state != CheckpointState::kComplete || (limit && entry.step > *limit)) continue;
    if (passed.spoilt.contains(entry.name)) continue;
    if (!is_of_lineage(contents, entry.generation, entry.step, &entry)) continue;
    // A start may have gone on from before one that counted.
    if (after && (entry.step <= *after || wrote_wrong(contents, entry.member, entry.step)))
      continue;
    const auto why = passed.lost.find(entry.name);
    lost.push_back({entry.name, entry.step,
                    why == passed.lost.end() ? "it is not there, or not the one that was journalled"
                                             : why->second});
  }
  std::sort(lost.begin(), lost.end(), [](const LostCheckpoint& a, const LostCheckpoint& b) {
    return std::tie(a.step, a.name) < std::tie(b.step, b.name);
  });
  return lost;
}

std::string names_with_reasons(const std::vector<LostCheckpoint>& lost) {
  std::string text;
  for (const LostCheckpoint& each : lost)
    text += (text.empty() ? "" : "; ") + each.name + ": " + each.why;
  return text;
}

// The newest checkpoint that can be taken; an empty Chosen if the journal has none, either.
Result<Chosen> choose(const std::vector<ListedCheckpoint>& found, CheckpointShelf& shelf,
                      Journal& journal, const JournalContents& contents, const Options& options,
                      Logger& logger) {
  PassedOver passed;
  for (const ListedCheckpoint& listed : found) {
    auto chosen = check(listed, shelf, journal, contents, options);
    if (chosen.is_ok() && chosen->spoilt.empty()) {
      chosen->lost = lost_after(chosen->step, passed, contents);
      chosen->is_before_spoilt = !passed.spoilt.empty();
      return chosen;
    }
    if (chosen.is_ok()) {
      logger.warn("checkpoint_spoilt",
                  "checkpoint " + listed.path + ": " + chosen->spoilt + "; taking an older one");
      passed.spoilt.insert(checkpoint_name(listed.name));
      continue;
    }
    const Status status = chosen.status();
    if (!is_lost(status)) {
      return status.with_context("checkpoint " + listed.path +
                                 " cannot be read now, and an older one would lose steps; nothing "
                                 "was changed, so repair the cause that follows and resume again");
    }
    logger.warn("checkpoint_damaged",
                "checkpoint " + listed.path + ": " + status.message() + "; trying an older one");
    passed.lost[checkpoint_name(listed.name)] = status.message();
  }
  const std::vector<LostCheckpoint> lost = lost_after(std::nullopt, passed, contents);
  if (lost.empty()) return Chosen{};
  return Status(Code::kBadData,
                "Lockstep cannot resume from any checkpoint that is complete in the journal (" +
                    names_with_reasons(lost) + "); nothing was changed: restore one of them in " +
                    options.run_dir + " and resume again, or " + "begin anew in another --run-dir");
}

// Its steps are trained again, and the user should know which.
std::string loss_text(const Chosen& from, const Options& options) {
  const Step steps = from.lost.back().step - from.step;
  return "the run goes back to step " + std::to_string(from.step) + ", because newer checkpoints " +
         "are lost (" + names_with_reasons(from.lost) + "); it trains " + counted(steps, "step") +
         " again. Find out what deletes or damages files in " + options.run_dir + "/checkpoints";
}

// Whether the lineage ends at `to` already, in the journal.
bool is_cut_at(const JournalContents& contents, const ResumePoint& to) {
  const bool has_later =
      std::any_of(contents.checkpoints.begin(), contents.checkpoints.end(),
                  [&](const CheckpointEntry& entry) {
                    return entry.state == CheckpointState::kComplete && entry.step > to.step;
                  }) ||
      std::any_of(contents.evals.begin(), contents.evals.end(),
                  [&](const EvalEntry& entry) { return entry.step > to.step; });
  return !has_later && !newest_sound(contents) && cut_ledger(contents.ledger, to).empty();
}

// Why an end by the script counts no more (script_end.h, E3); empty: it does.
std::string why_no_end(const ScriptEnd& end, const Chosen& from, const JournalContents& contents,
                       const Options& options) {
  if (!holds_in(end, options.total_steps))
    return "the run is to have " + counted(options.total_steps, "step") + " now, and was to have " +
           std::to_string(end.planned);
  const auto limit = newest_sound(contents);
  const bool is_undone =
      from.step < end.step && (from.is_before_spoilt || (limit && *limit < end.step));
  return is_undone ? "steps that led to it are undone" : "";
}

// The script ended the run there, as the journal says or, where its report was lost with all
// processes, the manifest. Adds what is news to `entries`.
std::optional<ScriptEnd> script_end_of(const Chosen& from, const JournalContents& contents,
                                       const Options& options, Logger& logger,
                                       std::vector<JournalEntry>* entries) {
  const auto known = script_end_in(contents.settings);
  if (!known && from.ends_at != 0 && from.ends_at < options.total_steps) {
    const ScriptEnd found{from.ends_at, options.total_steps};
    entries->push_back(SettingEntry{kEndSetting, text_of(found)});
    return found;
  }
  if (!known) return std::nullopt;
  const std::string why = why_no_end(*known, from, contents, options);
  if (why.empty()) return known;
  const std::string text = "that the script ended the run after step " +
                           std::to_string(known->step) + " counts no more: " + why;
  logger.info("script_end", text);
  entries->push_back(EventEntry{contents.last_generation, "script_end", text});
  entries->push_back(SettingEntry{kEndSetting, ""});
  return std::nullopt;
}

}  // namespace

std::vector<ListedCheckpoint> candidates(const std::vector<ListedCheckpoint>& on_disk,
                                         const JournalContents& contents) {
  std::vector<ListedCheckpoint> found;
  const auto limit = newest_sound(contents);
  for (auto it = on_disk.rbegin(); it != on_disk.rend(); ++it) {
    if (limit && it->name.step > *limit) continue;
    if (wrote_wrong(contents, it->name.member, it->name.step)) continue;
    const CheckpointEntry* known = find(contents, checkpoint_name(it->name));
    const bool is_same = known == nullptr || !it->status.is_ok() ||
                         known->manifest_sha256 == it->info.manifest_sha256;
    // A rollback marks only what counted then. A checkpoint that was dropped before may still be
    // there.
    const bool is_in_lineage =
        (is_of_lineage(contents, it->name.generation, it->name.step, known) ||
         (LOCKSTEP_BUG(kDroppedCounts) && known != nullptr)) &&
        (known == nullptr || known->state != CheckpointState::kRolledBack);
    if (is_same && is_in_lineage) found.push_back(*it);
  }
  return found;
}

Result<ResumePlan> plan_resume(CheckpointShelf& shelf, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk, shelf.list());
  LOCKSTEP_ASSIGN_OR_RETURN(Chosen from, choose(candidates(on_disk, contents), shelf, journal,
                                                contents, options, logger));
  ResumePlan plan{
      {from.step, Phase::kTrain}, from.path, std::move(from.entries), std::move(from.fingerprint)};
  if (plan.point.step > options.total_steps) {
    return Status(Code::kUsage, "the run stands at step " + std::to_string(plan.point.step) +
                                    " and was asked to end after " +
                                    counted(options.total_steps, "step") +
                                    ": give a larger train.max_steps or train.epochs");
  }
  EvalEntries evals;
  for (const EvalEntry& eval : contents.evals) evals[eval.step] = eval;
  for (const EvalEntry& eval : from.recovered.evals) evals[eval.step] = eval;
  const auto end = script_end_of(from, contents, options, logger, &plan.entries);
  const std::string name = plan.path.substr(plan.path.find_last_of('/') + 1);
  plan.point.phase = phase_after(plan.point.step, evals, options, end, is_after_edge(name));
  if (!is_cut_at(contents, plan.point)) {
    plan.entries.push_back(RollbackEntry{plan.point, name, "resume"});
  }
  if (!from.lost.empty()) {
    const std::string text = loss_text(from, options);
    logger.warn("checkpoints_lost", text);
    plan.entries.push_back(EventEntry{contents.last_generation, "checkpoints_lost", text});
  }
  for (StepEntry& step : from.recovered.steps) plan.entries.push_back(step);
  for (RecordsEntry& batch : from.recovered.batches) plan.entries.push_back(std::move(batch));
  for (const EvalEntry& eval : from.recovered.evals) plan.entries.push_back(eval);
  return plan;
}

Result<ResumePlan> plan_resume(const std::string& directory, Journal& journal,
                               const JournalContents& contents, const Options& options,
                               Logger& logger) {
  DirectoryShelf shelf(directory);
  return plan_resume(shelf, journal, contents, options, logger);
}

Result<RecoveredSteps> recover_steps(Journal& journal, const Manifest& manifest,
                                     const JournalContents& contents) {
  const Step end = manifest.resume.step;
  LOCKSTEP_ASSIGN_OR_RETURN(auto all_pieces, journal.pieces());
  Step complete = end_of(pieces_before(std::move(all_pieces), end));
  LOCKSTEP_RETURN_IF_ERROR(journal.visit_steps(
      complete, end, [&](const StepEntry& entry) { complete = entry.step + 1; }));
  std::map<Step, StepEntry> found;
  const auto take = [&](const wire::StepRecord& record, Generation generation) {
    if (record.step() >= complete && record.step() < end) {
      found.try_emplace(record.step(), step_entry(record, generation));
    }
  };
  for (const LedgerRow& row : contents.ledger) {
    if (row.rolled_back || complete >= end) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto batches, journal.batches(row.generation, complete, end));
    for (const RecordsEntry& batch : batches) {
      for (const wire::StepRecord& record : batch.records) {
        if (row.covers(record.step())) take(record, row.generation);
      }
    }
  }
  RecoveredSteps recovered;
  recovered.batches = handed_in(manifest, contents);
  recovered.evals = evals_in(manifest, contents);
  for (const RecordsEntry& batch : recovered.batches) {
    for (const wire::StepRecord& record : batch.records) take(record, batch.generation);
  }
  for (auto& [step, entry] : found) {
    if (step != complete + recovered.steps.size()) break;
    recovered.steps.push_back(entry);
  }
  if (complete + recovered.steps.size() != end) {
    return Status(Code::kBadData, "the records of step " +
                                      std::to_string(complete + recovered.steps.size() + 1) +
                                      " are missing in the journal and in the checkpoint");
  }
  return recovered;
}

}  // namespace lockstep::coordinator
