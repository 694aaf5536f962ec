// Takes the workers' records of steps. A step joins the history when every rank has reported it.
#include <algorithm>
#include <bit>

#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "comm/run/job/metric_names.h"
#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/evaluations.h"
#include "coordinator/state/skips.h"

namespace lockstep::coordinator {
namespace {

void ack(Turn& turn, const Member& member) {
  wire::Envelope envelope;
  envelope.mutable_records_ack()->set_batch(member.acked_batch);
  envelope.mutable_records_ack()->set_sequence(turn.state.sequence);
  turn.send(member.connection, std::move(envelope));
}

// Empty if the record is as the plan says for its step in this generation.
std::string against_plan(const Turn& turn, Generation generation, const wire::StepRecord& record) {
  const StepPlan plan = plan_step(turn.options.shape, record.step());
  if (record.step() >= last_step(turn.state, turn.options)) return "lies after the end of the run";
  if (record.epoch() != plan.epoch) return "names epoch " + std::to_string(record.epoch());
  const uint64_t samples =
      samples_in(turn.state.skips, generation, record.step(), turn.options.shape);
  if (record.samples() != samples) {
    return "counts " + std::to_string(record.samples()) + " samples instead of " +
           std::to_string(samples);
  }
  return {};
}

const LedgerRow* row_of(const State& state, Generation generation) {
  const auto era = state.lineage.find(generation);
  return era == state.lineage.end() || era->second.row.rolled_back ? nullptr : &era->second.row;
}

// The next step that `member` can have a record of in `generation`: it reports every step in order,
// from where the generation began for it. Nothing: that is not known.
std::optional<Step> due(const Member& member, Generation generation, const LedgerRow& row) {
  if (member.record_generation == 0) return std::nullopt;
  return member.record_generation == generation ? member.next_record : row.first.step;
}

// The common hash in an earlier report of the step, if one is left to compare with.
std::optional<uint64_t> known_hash(const State& state, Step step) {
  if (const auto it = state.pending.find(step); it != state.pending.end()) {
    return it->second.common_hash;
  }
  if (const auto it = state.early.find(step); it != state.early.end()) return it->second;
  return std::nullopt;
}

// kRecordsAccepted, kRecordsVoid, or the end of the run.
Reason take(Turn& turn, Member& member, Generation generation, const wire::StepRecord& record,
            RecordsEntry* kept) {
  State& state = turn.state;
  const LedgerRow* row = row_of(state, generation);
  if (row == nullptr || !row->covers(record.step())) return Reason::kRecordsVoid;
  const std::string name =
      "the record of step " + std::to_string(record.step()) + " from " + describe(state, member);
  const auto next = due(member, generation, *row);
  if (next && *next != record.step()) {
    return corrupt(turn, name + " came, but step " + std::to_string(*next) + " is next");
  }
  if (const std::string what = against_plan(turn, generation, record); !what.empty()) {
    return corrupt(turn, name + " " + what);
  }
  const auto hash = known_hash(state, record.step());
  if (turn.options.exact() && hash && *hash != record.common_hash()) {
    return corrupt(turn, name + " disagrees with that of another worker: one of them computes " +
                             "wrong, the weights cannot be trusted");
  }
  member.record_generation = generation;
  member.next_record = record.step() + 1;
  if (record.step() >= state.completed) count_report(state, member.id, generation, record);
  note_pace(turn, member, generation, record);
  kept->records.push_back(record);
  // All ranks report the same digests of a step: the first ones are kept.
  if (hash || record.step() < state.completed) kept->records.back().clear_slots();
  return Reason::kRecordsAccepted;
}

bool is_malformed(const Turn& turn, const wire::StepRecords& message) {
  const int entries = message.records_size() + message.evals_size();
  return entries == 0 || message.records_size() > limits::kRecordBatchSteps ||
         message.evals_size() > limits::kRecordBatchSteps ||
         std::any_of(message.evals().begin(), message.evals().end(),
                     [&](const auto& eval) {
                       return eval.step() > turn.options.total_steps || eval.samples() == 0 ||
                              eval.correct() > eval.samples() ||
                              !are_metrics(eval.metrics(), kMetricsOfAnEvaluation);
                     }) ||
         std::any_of(message.records().begin(), message.records().end(), [](const auto& record) {
           return !are_metrics(record.metrics(), kMetricsOfAModel);
         });
}

// All ranks made the evaluation together and report it. The first report is kept. Returns
// kRecordsAccepted, kRecordsVoid, or the end of the run.
Reason take(Turn& turn, const Member& member, Generation generation, const wire::EvalReport& eval) {
  State& state = turn.state;
  if (!is_in_lineage(state, generation, eval.step())) return Reason::kRecordsVoid;
  const EvalEntry entry = eval_entry(eval, generation);
  const auto [it, is_new] = state.evals.try_emplace(entry.step, entry);
  const EvalEntry& known = it->second;
  if (is_new) {
    turn.persist(entry);
  } else if (turn.options.exact() &&
             (known.correct != entry.correct || known.samples != entry.samples ||
              std::bit_cast<uint64_t>(known.loss) != std::bit_cast<uint64_t>(entry.loss))) {
    return corrupt(turn, "the evaluation after step " + std::to_string(entry.step) + " of " +
                             describe(state, member) +
                             " differs from an earlier one of the same weights: " +
                             std::to_string(entry.correct) + " instead of " +
                             std::to_string(known.correct) + " right");
  }
  return Reason::kRecordsAccepted;
}

bool has_enough(const State& state, Step step, Step certain, const PendingStep& pending) {
  // Every start resumes after it, so no later generation can redo it: one report is enough.
  if (step < certain) return pending.reports > 0;
  return pending.reports >= state.source_members.size();
}

}  // namespace

void count_report(State& state, MemberId member, Generation generation,
                  const wire::StepRecord& record) {
  PendingStep& pending = state.pending[record.step()];
  const bool is_first = pending.reports++ == 0;
  if (is_first) {
    pending.common_hash = record.common_hash();
    pending.first_reporter = member;
  }
  const auto era = state.lineage.find(generation);
  const bool is_writer = era != state.lineage.end() && era->second.writer == member;
  if (is_first || is_writer) pending.values = step_entry(record, generation);
}

void complete_steps(Turn& turn, Step resume) {
  State& state = turn.state;
  const Step before = state.completed;
  while (!state.pending.empty()) {
    const auto first = state.pending.begin();
    const Step certain = std::max(resume, state.lineage.at(state.source_generation).row.first.step);
    if (first->first != state.completed ||
        !has_enough(state, first->first, certain, first->second)) {
      break;
    }
    const StepEntry& values = first->second.values;
    if (auto what = wrong_with_loss(state.losses, turn.options.job.train(), values,
                                    turn.options.shape.turns)) {
      state.losses.bad = BadLoss{values, std::move(*what)};  // no later step is of any worth
      return;
    }
    remember_loss(state.losses, values, turn.options.shape.turns);
    const bool is_whole = first->first >= certain;
    turn.persist(values);
    if (state.in_history == state.completed) {
      turn.actions.push_back(AppendHistory{values});
      ++state.in_history;
    }
    if (is_whole) {
      state.early.clear();  // every member is past the older generations
    } else {
      state.early[first->first] = first->second.common_hash;
    }
    state.pending.erase(first);
    ++state.completed;
  }
  if (state.completed > before) drop_judged(turn, before);
}

Reason on_records(Turn& turn, Member& member, Generation generation,
                  const wire::StepRecords& message) {
  if (message.batch() <= member.acked_batch) {
    ack(turn, member);  // the acknowledgement was lost with a connection
    return Reason::kAlreadyCounted;
  }
  if (turn.state.source_generation == 0 || generation > turn.state.last_generation) {
    return Reason::kRefusedFuture;
  }
  if (message.batch() != member.acked_batch + 1) {
    ack(turn, member);
    return Reason::kRefusedGap;
  }
  if (is_malformed(turn, message)) return Reason::kRefusedMalformed;
  RecordsEntry kept{generation, member.id, message.batch(), {}};
  for (const wire::StepRecord& record : message.records()) {
    const Reason reason = take(turn, member, generation, record, &kept);
    if (is_end(reason)) return reason;
  }
  if (!kept.records.empty()) member.step = std::max(member.step, member.next_record);
  Reason reason = kept.records.empty() ? Reason::kRecordsVoid : Reason::kRecordsAccepted;
  for (const wire::EvalReport& eval : message.evals()) {
    const Reason taken = take(turn, member, generation, eval);
    if (taken != Reason::kRecordsVoid) reason = taken;
    if (is_end(reason)) return reason;
  }
  member.acked_batch = message.batch();
  if (!LOCKSTEP_BUG(kBatchNotKept)) turn.persist(std::move(kept));
  complete_steps(turn);
  ack(turn, member);
  return finish_if_all_left(turn, reason);
}

}  // namespace lockstep::coordinator
