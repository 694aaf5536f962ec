#include "worker/script/script_replay.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "comm/base/exact_number.h"
#include "comm/base/file.h"
#include "comm/run/checkpoint/numerics.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/checkpoint/weights_hash.h"
#include "comm/run/evaluation/edge.h"
#include "worker/script/alone.h"

namespace lockstep {
namespace {

constexpr size_t kPlanBytes = size_t{256} << 20;  // a step takes 60 bytes
constexpr uint64_t kSamplesShown = 16;            // of a slot

SkipSet skips_of(const wire::ReplayPlan& plan) {
  SkipSet set;
  for (const wire::ReplaySlots& slots : plan.skips())
    set.add(slots.step(), slots.begin(), slots.end());
  return set;
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

// " of member 3", which had the slot in the run; empty: no member had it.
std::string member_of(const wire::ReplayPlan& plan, uint64_t generation, uint32_t slot) {
  for (const wire::ReplaySlots& had : plan.members())
    if (had.generation() == generation && had.begin() <= slot && slot < had.end())
      return " of member " + number(had.member());
  return "";
}

// The first ones, by their numbers in the data set.
std::string samples_of(const ls_task& task, const OrderSpec& spec) {
  const EpochOrder order(spec, task.epoch);
  std::string text;
  const uint64_t end = std::min(task.end, task.begin + kSamplesShown);
  for (uint64_t at = task.begin; at < end; ++at) text += " " + number(order.at(at));
  return text + (end < task.end ? " ..." : "");
}

}  // namespace

Result<wire::ReplayPlan> ScriptReplay::read(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, kPlanBytes));
  wire::ReplayPlan plan;
  if (plan.ParseFromString(bytes) && plan.steps_size() > 0) return plan;
  return Status(Code::kUsage, path + " is no plan of a replay; start it with lockstep replay");
}

void ScriptReplay::took_slot(const ls_task& task, double loss) {
  slots_.push_back({task, loss});
}

Status ScriptReplay::load_base(ScriptEngine& engine) {
  if (plan_.base().empty()) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadedState loaded, read_checkpoint(plan_.base()));
  return engine.install_state(loaded.state.tensors(), plan_.steps(0).step())
      .with_context(plan_.base());
}

void ScriptReplay::compare_machines(const ScriptEngine& engine) {
  const std::string differs =
      numerics_difference(engine.fingerprint(), {plan_.numerics().begin(), plan_.numerics().end()});
  if (!differs.empty() && !plan_.numerics().empty())
    add("note: the script or this machine may compute other bits than the run did: " + differs);
  if (plan_.job().comm().numerics() != "exact")
    add("note: comm.numerics is not exact: sums may differ in their last bits");
}

Status ScriptReplay::compare(const wire::StepRecord& record, const wire::ReplayStep& recorded,
                             ScriptEngine& engine) {
  const auto differs = [&](const std::string& what, const std::string& now,
                           const std::string& then) {
    report_.is_same = false;
    add("DIFFERS: " + what + " of step " + number(record.step() + 1) + " is " + now +
        " here and was " + then + " in the run");
  };
  if (!same_bits(record.lr(), recorded.lr()))
    differs("the learning rate", exact_text(record.lr()), exact_text(recorded.lr()));
  if (!same_bits(record.loss(), recorded.loss()))
    differs("the loss", exact_text(record.loss()), exact_text(recorded.loss()));
  if (record.skipped() != recorded.skipped())
    differs("whether the update was left out", record.skipped() ? "yes" : "no",
            recorded.skipped() ? "yes" : "no");
  if (recorded.checkpoint().empty()) return Status::ok();
  if (is_after_edge(recorded.checkpoint())) LOCKSTEP_RETURN_IF_ERROR(cross_edge(engine));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, engine.state());
  const std::string hash = weights_hash(state, /*all=*/false);
  if (hash != recorded.weights_sha256())
    differs("the hash of the weights", hash, recorded.weights_sha256());
  else
    add("the weights are those of " + recorded.checkpoint() + ", bit for bit");
  return Status::ok();
}

void ScriptReplay::tell_evaluations(Step applied, ScriptEngine& engine) const {
  for (const wire::EvalMark& mark : plan_.evals())
    if (mark.step() <= applied) engine.was_evaluated(lockstep::mark_of(mark));
}

Status ScriptReplay::cross_edge(ScriptEngine& engine) {
  const Step applied = engine.applied_steps();
  if (!has_edges_ || crossed_ == applied || !edge_due(ends_, applied, plan_.total_steps()))
    return Status::ok();
  crossed_ = applied;
  tell_evaluations(applied, engine);
  return engine.cross_edge(applied >= plan_.total_steps()).status();
}

void ScriptReplay::tell_slots(const wire::ReplayStep& recorded, const OrderSpec& order) {
  add("step " + number(recorded.step() + 1) + ", in the run of generation " +
      number(recorded.generation()) + ":");
  for (const SlotLoss& slot : slots_) {
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.9g", slot.loss);
    add("  loss " + std::string(loss) + "  slot " + number(slot.task.slot) +
        member_of(plan_, recorded.generation(), slot.task.slot) + "  positions [" +
        number(slot.task.begin) + ", " + number(slot.task.end) + ") of epoch " +
        number(slot.task.epoch + 1) + "  samples" + samples_of(slot.task, order));
  }
}

Result<ScriptReplay::Report> ScriptReplay::run(const RunShape& shape, const OrderSpec& order,
                                               ScriptEngine& engine, bool has_edges) {
  has_edges_ = has_edges;
  ends_.steps_per_epoch = steps_per_epoch(shape);
  if (is_after_edge(plan_.base_name())) crossed_ = plan_.steps(0).step();
  if (order.fingerprint != plan_.train_fingerprint())
    return Status(Code::kBadData,
                  "the data are not those that the run was trained with "
                  "(fingerprint " +
                      order.fingerprint + " now, " + plan_.train_fingerprint() +
                      " then); give the script the data of the run");
  add("computed from " + (plan_.base().empty() ? "the initial weights" : plan_.base_name()));
  compare_machines(engine);
  LOCKSTEP_RETURN_IF_ERROR(load_base(engine));
  AloneGeneration generation(engine);
  LOCKSTEP_RETURN_IF_ERROR(generation.begin({.slots = shape.slots,
                                             .total_steps = plan_.total_steps(),
                                             .skips = skips_of(plan_),
                                             .is_writer = false}));
  const wire::ReplayStep* recorded = nullptr;
  for (const wire::ReplayStep& step : plan_.steps()) {
    if (!report_.is_same) break;
    recorded = &step;
    slots_.clear();
    tell_evaluations(step.step(), engine);
    Status status = cross_edge(engine);
    if (!status.is_ok()) {
      generation.abort();
      return status;
    }
    const auto outcome = engine.step();
    status = outcome.status();
    if (status.is_ok()) status = compare(outcome->record, step, engine);
    if (!status.is_ok()) {
      generation.abort();
      return status;
    }
  }
  if (report_.is_same)
    add("steps " + number(plan_.steps(0).step() + 1) + " to " + number(recorded->step() + 1) +
        " gave the recorded losses again, bit for bit");
  else
    add("it is the first step that differs; no step behind it was computed");
  tell_slots(*recorded, order);
  return std::move(report_);
}

}  // namespace lockstep
