#include "coordinator/term/term.h"

#include <algorithm>
#include <set>

#include "comm/base/planted_bug.h"
#include "comm/wire/resume_point.h"
#include "coordinator/state/corruption.h"
#include "coordinator/state/identity.h"
#include "coordinator/state/skips.h"
#include "coordinator/term/lineage.h"
#include "coordinator/term/worked.h"

namespace lockstep::coordinator {
namespace {

Status check_run(const JournalContents& contents, CheckpointShelf& shelf, const Options& options,
                 BeginMode mode) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto on_disk, shelf.list());
  LOCKSTEP_RETURN_IF_ERROR(
      check_lineage(contents, on_disk, options.run_dir, mode == BeginMode::kTakeOver));
  if (options.shape.slots > options.shape.global_batch) {
    return {Code::kUsage, "train.slots is " + std::to_string(options.shape.slots) +
                              ", more than the " + std::to_string(options.shape.global_batch) +
                              " samples of train.global_batch: a slot would never have a sample"};
  }
  if (options.total_steps == 0) {
    return {Code::kUsage, "train.epochs and train.max_steps are both 0: the run has no length"};
  }
  if (contents.identity.empty()) return Status::ok();
  if (mode == BeginMode::kFirst) {
    return {Code::kUsage, options.run_dir +
                              " holds a run already: add --resume to go on with it, or choose "
                              "another --run-dir"};
  }
  return check_identity(contents.identity, options.identity);
}

// The steps of the surviving lineage that are complete. Reads the newest ones, and summaries of the
// others.
Result<Step> count_steps(Journal& journal, Step end, uint32_t turns, BegunTerm* begun) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto all_pieces, journal.pieces());
  const auto pieces = pieces_well_before(std::move(all_pieces), end);
  begun->stats.begin(pieces);
  Step complete = end_of(pieces);
  LOCKSTEP_RETURN_IF_ERROR(journal.visit_steps(complete, end, [&](const StepEntry& entry) {
    if (entry.step != complete) return;
    ++complete;
    begun->stats.add(entry);
    remember_loss(begun->beginning.losses, entry, turns);
  }));
  return complete;
}

// The row of a generation that lives. A term that began from a checkpoint has closed the rows
// before, and where nothing was cut away, the last row is still open.
const LedgerRow* open_row(const JournalContents& contents) {
  for (const LedgerRow& row : contents.ledger) {
    const bool is_started = std::any_of(
        contents.generations.begin(), contents.generations.end(), [&](const GenerationEntry& e) {
          return e.generation == row.generation && e.state == GenerationState::kStarted;
        });
    if (!row.last && !row.rolled_back && is_started) return &row;
  }
  return nullptr;
}

Result<wire::Start> parse_start(const GenerationEntry& entry) {
  wire::Start start;
  if (!entry.start.empty() && start.ParseFromString(entry.start)) return start;
  return Status(Code::kInternal, "the journal does not know how generation " +
                                     std::to_string(entry.generation) +
                                     " was started; stop the run and begin again with --resume");
}

void add_connected(const JournalContents& contents, const LivingGeneration& living,
                   std::vector<MemberEntry>* members) {
  std::set<MemberId> listed;
  for (const auto& info : living.start.members()) listed.insert(info.member());
  if (living.planned) {
    for (const auto& info : living.planned->start.members()) listed.insert(info.member());
  }
  for (const MemberEntry& entry : contents.members) {
    if (listed.contains(entry.member)) members->push_back(entry);
  }
}

// Adds the reports of steps that are not complete yet, and the closed rows that did them.
Status add_unfinished(Journal& journal, const JournalContents& contents, Step completed,
                      LivingGeneration* living) {
  for (const LedgerRow& row : contents.ledger) {
    if (row.rolled_back || (row.last && row.last->step <= completed)) continue;
    if (row.last) living->closed.push_back(row);
    LOCKSTEP_ASSIGN_OR_RETURN(auto batches, journal.batches(row.generation, completed, kNoStep));
    for (RecordsEntry& batch : batches) {
      std::erase_if(batch.records, [&](const wire::StepRecord& record) {
        return record.step() < completed || !row.covers(record.step());
      });
      if (!batch.records.empty()) living->unfinished.push_back(std::move(batch));
    }
  }
  return Status::ok();
}

// The generation of the open row, and the planned one after it.
Result<LivingGeneration> living_generation(Journal& journal, const JournalContents& contents,
                                           const LedgerRow& row, Step completed) {
  LivingGeneration living;
  living.generation = row.generation;
  living.row = row;
  for (const GenerationEntry& entry : contents.generations) {
    if (entry.generation == row.generation) {
      LOCKSTEP_ASSIGN_OR_RETURN(living.start, parse_start(entry));
    }
    if (entry.generation > row.generation && entry.state == GenerationState::kPlanned &&
        !LOCKSTEP_BUG(kPlanForgottenAtTakeOver)) {
      LOCKSTEP_ASSIGN_OR_RETURN(wire::Start start, parse_start(entry));
      living.planned = LivingGeneration::Planned{entry.generation, std::move(start)};
    }
  }
  if (!living.start.has_resume()) {  // it was planned, and its members found the boundary
    *living.start.mutable_resume() = to_wire(row.first);
  }
  add_connected(contents, living, &living.members);
  living.batches = contents.batches;
  LOCKSTEP_RETURN_IF_ERROR(add_unfinished(journal, contents, completed, &living));
  LOCKSTEP_RETURN_IF_ERROR(add_worked(journal, contents, &living));
  return living;
}

// A term that begins from disk leaves no generation of an earlier one open. A take-over leaves the
// generations that its members may live in.
void end_generations(const JournalContents& contents, Term term, bool is_take_over,
                     std::vector<JournalEntry>* entries) {
  for (const GenerationEntry& entry : contents.generations) {
    const bool was_started = entry.state == GenerationState::kStarted;
    const bool is_pending = entry.state == GenerationState::kPrepared ||
                            (entry.state == GenerationState::kPlanned && !is_take_over);
    if (was_started && !is_take_over) {
      entries->push_back(GenerationEntry{entry.generation, term, GenerationState::kClosed, {}, {}});
    }
    if (is_pending) {
      entries->push_back(
          GenerationEntry{entry.generation, term, GenerationState::kAbandoned, {}, {}});
    }
  }
}

// The members of the last term in which any registered.
std::vector<MemberEntry> newest_members(const JournalContents& contents) {
  Term newest = 0;
  for (const MemberEntry& entry : contents.members) newest = std::max(newest, entry.term);
  std::vector<MemberEntry> members;
  for (const MemberEntry& entry : contents.members)
    if (entry.term == newest) members.push_back(entry);
  return members;
}

// Takes what the journal says, whatever the mode. The lineage goes on from `end`. After a resume
// all processes are new. Else it also takes what only processes of the term before can still tell;
// in a take-over also who they are, because the new coordinator was not there.
Beginning fill(const JournalContents& contents, const Options& options, BeginMode mode, Term term,
               Step end) {
  Beginning beginning;
  beginning.run_id = options.job.job();
  beginning.lineage_id = contents.mark.lineage_id;
  beginning.sequence = contents.mark.sequence;
  beginning.term = term;
  beginning.next_member = contents.last_member + 1;
  beginning.generation = contents.last_generation;
  beginning.is_identity_stored = !contents.identity.empty();
  beginning.checks = check_history(contents);
  beginning.skips = contents.skips;
  for (const EvalEntry& eval : contents.evals) {
    if (eval.step <= end) beginning.evals[eval.step] = eval;
  }
  for (const CheckpointEntry& entry : contents.checkpoints) {
    if (entry.state == CheckpointState::kDropped) {
      if (mode != BeginMode::kResume) beginning.dropped.insert(entry.name);
      continue;
    }
    const bool survives = entry.state == CheckpointState::kComplete && entry.step <= end;
    CheckpointEntry copy = entry;
    if (!survives) copy.state = CheckpointState::kRolledBack;
    (survives ? beginning.checkpoints : beginning.stray).push_back(std::move(copy));
  }
  if (mode == BeginMode::kTakeOver) beginning.known = newest_members(contents);
  return beginning;
}

Term next_term(const JournalContents& contents, const TermRequest& request) {
  return request.term != 0 ? request.term : contents.last_term + 1;
}

Result<BegunTerm> take_over(Journal& journal, const JournalContents& contents, const LedgerRow& row,
                            const Options& options, const TermRequest& request) {
  BegunTerm begun;
  const Term term =
      LOCKSTEP_BUG(kTermNotCounted) ? contents.last_term : next_term(contents, request);
  begun.earlier_wall_ms = contents.wall_ms;
  begun.beginning = fill(contents, options, request.mode, term, kNoStep);
  LOCKSTEP_ASSIGN_OR_RETURN(const Step completed,
                            count_steps(journal, kNoStep, options.shape.turns, &begun));
  begun.beginning.completed = completed;
  begun.beginning.settings = contents.settings;
  LOCKSTEP_ASSIGN_OR_RETURN(begun.beginning.living,
                            living_generation(journal, contents, row, completed));
  std::vector<JournalEntry> entries;
  end_generations(contents, term, true, &entries);
  entries.push_back(TermEntry{term, request.pid, request.job_json});
  LOCKSTEP_RETURN_IF_ERROR(journal.commit(entries, request.now));
  return begun;
}

bool is_complete(const ResumePlan& plan) {
  return !plan.path.empty() && plan.point.phase == Phase::kEnd;
}

Result<BegunTerm> from_checkpoint(Journal& journal, const JournalContents& contents,
                                  CheckpointShelf& shelf, const Options& options,
                                  const TermRequest& request, Logger& logger) {
  LOCKSTEP_ASSIGN_OR_RETURN(ResumePlan plan,
                            plan_resume(shelf, journal, contents, options, logger));
  BegunTerm begun;
  const Term term = next_term(contents, request);
  begun.earlier_wall_ms = contents.wall_ms;
  begun.is_complete = is_complete(plan);
  std::vector<JournalEntry> entries = plan.entries;
  // A run to which nothing is left to do stays as it is.
  if (!begun.is_complete || !entries.empty()) {
    end_generations(contents, term, false, &entries);
    if (request.mode == BeginMode::kResume) {  // the job says what is wanted now
      for (const auto& [key, value] : contents.settings)
        if (key != kStateSetting && key != kEndSetting) entries.push_back(SettingEntry{key, ""});
    }
    entries.push_back(TermEntry{term, request.pid, request.job_json});
    LOCKSTEP_RETURN_IF_ERROR(journal.commit(entries, request.now));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const JournalContents now, journal.load());
  begun.beginning = fill(now, options, request.mode, now.last_term, plan.point.step);
  begun.beginning.settings = now.settings;
  begun.beginning.base = plan.point;
  begun.beginning.base_checkpoint = plan.path;
  begun.beginning.base_fingerprint = std::move(plan.fingerprint);
  LOCKSTEP_ASSIGN_OR_RETURN(begun.beginning.completed,

                            count_steps(journal, plan.point.step, options.shape.turns, &begun));
  return begun;
}

}  // namespace

Result<BegunTerm> begin_term(Journal& journal, const JournalContents& contents,
                             CheckpointShelf& shelf, const Options& options,
                             const TermRequest& request, Logger& logger) {
  LOCKSTEP_RETURN_IF_ERROR(check_run(contents, shelf, options, request.mode));
  const LedgerRow* row = open_row(contents);
  // The members' states cannot be trusted while a difference between them is open, nor when they
  // have seen samples that are to be left out.
  if (request.mode == BeginMode::kTakeOver && row != nullptr && !newest_sound(contents)) {
    return take_over(journal, contents, *row, options, request);
  }
  return from_checkpoint(journal, contents, shelf, options, request, logger);
}

Result<bool> check_term(Journal& journal, const JournalContents& contents, CheckpointShelf& shelf,
                        const Options& options, BeginMode mode, Logger& logger) {
  LOCKSTEP_RETURN_IF_ERROR(check_run(contents, shelf, options, mode));
  LOCKSTEP_ASSIGN_OR_RETURN(const ResumePlan plan,
                            plan_resume(shelf, journal, contents, options, logger));
  return is_complete(plan);
}

}  // namespace lockstep::coordinator
