// What the workers did, step by step. A step joins the history when every rank has reported it.
#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/limits.h"
#include "coordinator/decide_internal.h"

namespace lockstep::coordinator {
namespace {

uint64_t wall_us(const wire::PhaseTimes& t) {
  return uint64_t{t.data_wait_us()} + t.forward_us() + t.backward_us() + t.communication_us() +
         t.optimizer_us() + t.other_us();
}

void ack(Turn& turn, const Member& member) {
  wire::Envelope envelope;
  envelope.mutable_records_ack()->set_batch(member.acked_batch);
  turn.send(member.connection, std::move(envelope));
}

Reason corrupt(Turn& turn, const std::string& what) {
  turn.note(LogLine::Level::kInfo, "corruption", what);
  end_run(turn, 70, what + "; " + what_remains(turn));
  return Reason::kEndedCorruption;
}

// Empty when the record is what the plan says about its step.
std::string against_plan(const Turn& turn, const wire::StepRecord& record) {
  const data::StepPlan plan = data::plan_step(turn.options.shape, record.step());
  if (record.step() >= turn.options.total_steps) return "lies after the end of the run";
  if (record.epoch() != plan.epoch) return "names epoch " + std::to_string(record.epoch());
  if (record.samples() != plan.samples) {
    return "counts " + std::to_string(record.samples()) + " samples instead of " +
           std::to_string(plan.samples);
  }
  return {};
}

StepEntry entry_of(const Turn& turn, const wire::StepRecord& record) {
  StepEntry entry;
  entry.generation = turn.state.generation;
  entry.step = record.step();
  entry.epoch = record.epoch();
  entry.samples = record.samples();
  entry.correct = record.correct();
  entry.loss = record.loss();
  entry.lr = record.lr();
  entry.skipped = record.skipped();
  entry.common_hash = record.common_hash();
  entry.wall_us = wall_us(record.times());
  return entry;
}

// kRecordsAccepted, or the end of the run.
Reason take(Turn& turn, Member& member, const wire::StepRecord& record) {
  State& state = turn.state;
  const std::string name =
      "the record of step " + std::to_string(record.step()) + " from " + describe(state, member);
  if (record.step() != member.next_record) {
    return corrupt(turn,
                   name + " comes when step " + std::to_string(member.next_record) + " is due");
  }
  if (const std::string what = against_plan(turn, record); !what.empty()) {
    return corrupt(turn, name + " " + what);
  }
  member.next_record = record.step() + 1;
  member.step = std::max(member.step, member.next_record);
  PendingStep& pending = state.pending[record.step()];
  if (pending.reports == 0) {
    pending.common_hash = record.common_hash();
    pending.first_reporter = member.id;
  } else if (turn.options.exact() && pending.common_hash != record.common_hash()) {
    return corrupt(turn, name + " disagrees with that of " +
                             describe(state, state.members.at(pending.first_reporter)) +
                             ": one of them computes wrong, the weights cannot be trusted");
  }
  ++pending.reports;
  if (member.id == state.writer) {
    pending.values = entry_of(turn, record);
    pending.has_values = true;
  }
  return Reason::kRecordsAccepted;
}

void complete_steps(Turn& turn) {
  State& state = turn.state;
  while (!state.pending.empty()) {
    const auto first = state.pending.begin();
    LOCKSTEP_CHECK(first->first == state.completed, "pending steps follow the completed ones");
    if (first->second.reports < state.ranks.size()) return;
    LOCKSTEP_CHECK(first->second.has_values, "the writer is one of the ranks");
    turn.persist(first->second.values);
    turn.actions.push_back(AppendHistory{first->second.values});
    state.pending.erase(first);
    ++state.completed;
  }
}

}  // namespace

Reason on_records(Turn& turn, Member& member, const wire::StepRecords& message) {
  if (message.batch() <= member.acked_batch) {
    ack(turn, member);  // the acknowledgement was lost with a connection
    return Reason::kAlreadyCounted;
  }
  if (message.batch() != member.acked_batch + 1) {
    ack(turn, member);
    return Reason::kRefusedGap;
  }
  if (message.records_size() == 0 || message.records_size() > limits::kRecordBatchSteps) {
    return Reason::kRefusedMalformed;
  }
  RecordsEntry entry{turn.state.generation, member.id, message.batch(), {}};
  for (const wire::StepRecord& record : message.records()) {
    if (const Reason reason = take(turn, member, record); reason != Reason::kRecordsAccepted) {
      return reason;
    }
    entry.records.push_back(record);
  }
  member.acked_batch = message.batch();
  turn.persist(std::move(entry));
  complete_steps(turn);
  ack(turn, member);
  return Reason::kRecordsAccepted;
}

Reason on_eval(Turn& turn, Member& member, const wire::EvalReport& message) {
  State& state = turn.state;
  const EvalEntry entry{state.generation,  message.step(),    message.epoch(),
                        message.samples(), message.correct(), message.loss()};
  if (entry.step > turn.options.total_steps || entry.samples == 0 ||
      entry.correct > entry.samples) {
    return Reason::kRefusedMalformed;
  }
  const auto [it, is_new] = state.evals.try_emplace(entry.step, entry);
  if (is_new) {
    turn.persist(entry);
    return Reason::kEvalAccepted;
  }
  const EvalEntry& known = it->second;
  if (turn.options.exact() && (known.correct != entry.correct || known.samples != entry.samples ||
                               known.loss != entry.loss)) {
    return corrupt(turn, "the evaluation after step " + std::to_string(entry.step) + " of " +
                             describe(state, member) +
                             " differs from an earlier one of the same "
                             "weights: " +
                             std::to_string(entry.correct) + " instead of " +
                             std::to_string(known.correct) + " right");
  }
  return Reason::kAlreadyCounted;
}

}  // namespace lockstep::coordinator
