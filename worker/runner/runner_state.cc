// The boundary state at the point where a generation begins: this worker's own, a checkpoint's, the
// seed's, or a peer's.
#include "worker/runner/runner.h"
#include "worker/runner/state_transfer.h"

namespace lockstep {

Status Runner::install_state(Life& life) {
  const wire::StateSource& source = life.order.start.source();
  if (!source.checkpoint_path().empty()) return load_state(life);
  if (source.fresh()) {
    if (!parts_.engine.is_afresh()) {
      parts_.gate.lost_state();
      LOCKSTEP_RETURN_IF_ERROR(parts_.engine.start_afresh());
    }
    resumed_from_.clear();
    proof_ = {};
    return check_own_state(life);
  }
  if (holds_state(life.order.start, life.order.member))
    LOCKSTEP_RETURN_IF_ERROR(check_own_state(life));
  const auto root = transfer_root(life.order.start);
  return root ? transfer_state(life, *root) : check_own_state(life);
}

Status Runner::load_state(const Life& life) {
  const std::string& path = life.order.start.source().checkpoint_path();
  const auto read = read_checkpoint(path);
  if (!read.is_ok()) return damaged_since(read.status());
  const LoadedState& loaded = *read;
  const CheckpointInfo& info = loaded.info;
  if (info.manifest.resume.step != life.begin->step)
    return Status(Code::kInternal, "checkpoint " + info.name + " is not of step " +
                                       std::to_string(life.begin->step) +
                                       ", which was to be resumed");
  parts_.gate.lost_state();
  const Status fits = parts_.engine.install_state(loaded.state.tensors(), life.begin->step);
  if (!fits.is_ok()) return fits.with_context(path);
  resumed_from_ = info.name;
  proof_ = info.manifest.proof;
  parts_.logger.info("checkpoint_loaded", "resumed from " + info.name,
                     {{"step", life.begin->step}});
  return Status::ok();
}

// The resume point follows the largest answer, so that no member is ahead of it. A member that
// finds itself elsewhere must not train.
Status Runner::check_own_state(const Life& life) const {
  if (life.begin && parts_.engine.applied_steps() == life.begin->step) return Status::ok();
  const std::string begin =
      life.begin ? "resumes at step " + std::to_string(life.begin->step) : "names no resume point";
  return Status(Code::kInternal, "this worker's state is of step " +
                                     std::to_string(parts_.engine.applied_steps()) +
                                     ", the generation " + begin);
}

Status Runner::transfer_state(Life& life, uint32_t root) {
  Collective& collective = *life.collective;
  const Generation generation = life.order.generation;
  if (joins(life.order.start, life.order.member)) return receive_state_from(life, root);
  if (life.rank != root) return pass_state(collective, generation, root);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, parts_.engine.state());
  return send_state(collective, generation, {*life.begin, resumed_from_, proof_, life.track},
                    state);
}

Status Runner::receive_state_from(Life& life, uint32_t root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ReceivedState received,
                            receive_state(*life.collective, life.order.generation, root));
  const ResumePoint at = received.origin.at;
  // The peer's evaluations decide its phase; the start may lack some of them.
  if (life.begin && at.step != life.begin->step)
    return Status(Code::kInternal, "the state of rank " + std::to_string(root) + " is of step " +
                                       std::to_string(at.step) +
                                       ", the generation resumes at step " +
                                       std::to_string(life.begin->step));
  parts_.gate.lost_state();
  const Status fits = parts_.engine.install_state(received.state.tensors(), at.step);
  if (!fits.is_ok())
    return Status(Code::kInternal, "the state of rank " + std::to_string(root) + " does not fit: " +
                                       fits.message() + "; both must run the same job");
  life.begin = at;
  life.track = received.origin.track;
  life.plan.end_with(life.track, life.order.start.total_steps());
  resumed_from_ = received.origin.resumed_from;
  proof_ = received.origin.proof;
  parts_.logger.info("state_received", "received the state from rank " + std::to_string(root),
                     {{"generation", life.order.generation},
                      {"step", at.step},
                      {"bytes", received.state.bytes()}});
  return Status::ok();
}

}  // namespace lockstep
