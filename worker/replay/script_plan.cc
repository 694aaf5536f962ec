#include "worker/replay/script_plan.h"

#include <set>
#include <utility>

#include "coordinator/state/evaluations.h"

namespace lockstep {
namespace {

// The newest checkpoint that is whole; a damaged one costs time, not the answer.
void set_base(const ReplaySource& source, wire::ReplayPlan& plan) {
  for (const ListedCheckpoint& base : source.bases()) {
    if (!base.status.is_ok()) continue;
    const Manifest& manifest = base.info.manifest;
    plan.set_base(base.path);
    plan.set_base_name(base.info.name);
    for (const std::string& line : manifest.numerics_fingerprint) plan.add_numerics(line);
    return;
  }
}

Step first_step(const ReplaySource& source, const wire::ReplayPlan& plan) {
  for (const ListedCheckpoint& base : source.bases())
    if (base.path == plan.base()) return base.info.manifest.resume.step;
  return 0;
}

void add_step(const ReplaySource& source, const coordinator::StepEntry& entry,
              wire::ReplayPlan& plan) {
  wire::ReplayStep& step = *plan.add_steps();
  step.set_step(entry.step);
  step.set_generation(entry.generation);
  step.set_loss(entry.loss);
  step.set_lr(entry.lr);
  step.set_skipped(entry.skipped);
  const CheckpointInfo* const checkpoint = source.checkpoint_of(entry.step + 1);
  if (checkpoint == nullptr) return;
  step.set_checkpoint(checkpoint->name);
  step.set_weights_sha256(checkpoint->manifest.weights_sha256);
}

Status add_members(ReplaySource& source, wire::ReplayPlan& plan) {
  std::set<Generation> generations;
  for (const wire::ReplayStep& step : plan.steps()) generations.insert(step.generation());
  for (const Generation generation : generations) {
    LOCKSTEP_ASSIGN_OR_RETURN(const coordinator::SlotMapEntry map, source.slot_map(generation));
    for (size_t rank = 0; rank < map.runs.size(); ++rank) {
      wire::ReplaySlots& slots = *plan.add_members();
      slots.set_generation(generation);
      slots.set_member(map.members[rank]);
      slots.set_begin(map.runs[rank].begin);
      slots.set_end(map.runs[rank].end);
    }
  }
  return Status::ok();
}

}  // namespace

Result<wire::ReplayPlan> make_script_plan(ReplaySource& source) {
  wire::ReplayPlan plan;
  *plan.mutable_job() = source.job();
  plan.set_total_steps(
      coordinator::last_step(coordinator::script_end_in(source.settings()), source.total_steps()));
  plan.set_train_fingerprint(source.order().spec.fingerprint);
  set_base(source, plan);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto recorded, source.recorded(first_step(source, plan)));
  for (const coordinator::StepEntry& entry : recorded) add_step(source, entry, plan);
  for (const coordinator::SkipEntry& skip : source.skip_entries_in(recorded)) {
    wire::ReplaySlots& slots = *plan.add_skips();
    slots.set_step(skip.step);
    slots.set_begin(skip.slots.begin);
    slots.set_end(skip.slots.end);
  }
  for (const coordinator::EvalEntry& eval : source.evals())
    lockstep::put(coordinator::mark_of(eval), plan.add_evals());
  LOCKSTEP_RETURN_IF_ERROR(add_members(source, plan));
  return plan;
}

}  // namespace lockstep
