#include "worker/process/worker_host.h"

#include <cstdio>
#include <limits>

#include "worker/process/python_stacks.h"
#include "worker/process/save_stacks.h"
#include "worker/session/start_files.h"

namespace lockstep {

void WorkerHost::attach(Engine& engine, Runner& runner) {
  engine_ = &engine;
  runner_ = &runner;
  if (stop_requested_) engine_->request_stop();
}

void WorkerHost::request_stop(const std::string& why) {
  parts_.logger.info("stop_requested", "asked to stop: " + why);
  stop_requested_ = true;
  if (engine_ != nullptr) engine_->request_stop();
}

Status WorkerHost::on_registered(const wire::Registered& registered) {
  member_ = registered.member();
  parts_.in_hand.has_been_registered();
  const uint64_t batch = registered.job().train().global_batch();
  const bool is_resolved_now = job_.train().global_batch() == 0 && batch != 0;
  if (is_resolved_now) job_.mutable_train()->set_global_batch(batch);
  LOCKSTEP_RETURN_IF_ERROR(check_same_job(job_, registered.job()));
  if (is_resolved_now) parts_.mailbox.resolve(batch);
  return Status::ok();
}

// The gate first: after its answer no apply of these generations begins, so nothing uses the
// buffers that the collective's abort leaves.
void WorkerHost::on_close(Generation through, Closed closed) {
  look_for_hang();
  parts_.mailbox.close(through);
  parts_.gate.close(through, [this, through, closed = std::move(closed)](const Standing& standing) {
    // The answer may come from the training thread, right after its apply.
    parts_.loop.post([this, through, closed, standing] {
      parts_.context.close(through);
      closed(standing);
    });
  });
}

void WorkerHost::on_start(Generation generation, const wire::Start& start) {
  parts_.mailbox.put({generation, member_, run_id_, start, /*planned=*/false});
}

void WorkerHost::on_planned(Generation generation, const wire::Start& next) {
  parts_.mailbox.plan({generation, member_, run_id_, next, /*planned=*/true});
}

// As on_close(), but nothing waits for an answer, and no answer would be true for the new identity.
void WorkerHost::on_new_identity(Generation through) {
  on_close(through, [](const Standing&) {});
  parts_.gate.forget();
  if (end_if_new_) end_if_new_();
}

void WorkerHost::on_checkpoint_ack(const wire::CheckpointAck& ack) {
  if (runner_ != nullptr) runner_->drop_checkpoints({ack.drop().begin(), ack.drop().end()});
  parts_.mailbox.acknowledge(ack.name());
}

// Before the close, which ends the operations that stand still.
void WorkerHost::look_for_hang() {
  if (parts_.hang_notes == nullptr || !parts_.hang_notes->look(progress())) return;
  parts_.logger.warn("collectives_stood_still",
                     "the collectives of this worker stood still before its generation was closed; "
                     "lockstep report shows where");
}

void WorkerHost::on_hang() {
  if (parts_.hang_notes != nullptr) {
    const Status noted = parts_.hang_notes->save("this worker hangs", progress());
    if (!noted.is_ok()) parts_.logger.warn("hang_not_noted", noted.message());
  }
  PythonStacks stacks;
  if (parts_.stack_memory >= 0) stacks = take_python_stacks(parts_.stack_memory);
  // Its agent passes the last words of a worker on to the run's end.
  for (const std::string& line : stacks.brief)
    std::fprintf(stderr, "lockstep: this worker hangs: %s\n", line.c_str());
  Status saved = save_stacks(parts_.stacks_path);
  if (saved.is_ok() && !stacks.whole.empty())
    saved = add_to_stacks(parts_.stacks_path, stacks.whole);
  if (saved.is_ok())
    parts_.logger.warn("stacks_saved",
                       "this worker hangs; the stacks of its threads are in " + parts_.stacks_path);
  else
    parts_.logger.warn("stacks_not_saved", saved.message());
}

void WorkerHost::on_end(const Status& why, int exit_code) {
  if (exit_code == 0 || why.code() == Code::kCheckpointed)
    parts_.logger.info("end", "the run is over for this worker", {{"exit_code", exit_code}});
  else
    parts_.logger.error("end", why.message(), {{"exit_code", exit_code}});
  look_for_hang();
  // Makes the training thread return, whatever it waits for.
  constexpr Generation kAll = std::numeric_limits<Generation>::max();
  parts_.mailbox.end();
  parts_.gate.close(kAll, [](const Standing&) {});
  parts_.context.close(kAll);
  parts_.on_end(exit_code);
}

SessionHost::Heartbeat WorkerHost::heartbeat() const {
  const Progress at = progress();
  return {at.step, at.phase, at.bucket, at.enqueued, at.is_paused};
}

}  // namespace lockstep
