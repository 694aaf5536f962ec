// Checkpoints of a simulated worker, written to the simulated disk during the training, one at a
// time; and the state that begins with a checkpoint.
#include "tests/sim/cluster/trainer.h"
#include "tests/sim/world/disk.h"

namespace lockstep::sim {

Task<Status> Trainer::checkpoint(Life& life, bool is_final) {
  if (!life.is_writer) co_return Status::ok();
  const std::function<bool()> is_idle = [this] { return !is_writing_; };
  co_await waiter_.until(is_idle);
  auto records = parts_.port.unacknowledged();
  if (!records.is_ok()) co_return records.status();
  is_writing_ = true;
  submitted_ = {life.at.step, life.order.generation};
  Manifest manifest;
  manifest.resume = life.at;
  manifest.is_after_edge = life.plan.is_past_edge(life.at);
  manifest.generation = life.order.generation;
  manifest.member = life.order.member;
  manifest.seed = world_.job.seed();
  manifest.slots = world_.job.train().slots();
  manifest.global_batch = world_.job.train().global_batch();
  manifest.lineage = {life.order.start.lineage_id(), records->sequence, life.order.run_id,
                      resumed_from_, life.first_step};
  manifest.unacknowledged = std::move(records->batches);
  manifest.ends_at = life.plan.ended_at.value_or(0);
  const int64_t takes_ms = 1 + static_cast<int64_t>(world_.prng.below(30));
  parts_.process.loop().call_after(
      takes_ms, [this, manifest = std::move(manifest), state = state_, is_final] {
        is_writing_ = false;
        write_now(manifest, state, is_final);
        waiter_.poke();
      });
  if (!is_final) co_return Status::ok();
  co_await waiter_.until(is_idle);
  if (!write_status_.is_ok()) co_return write_status_;
  world_.moment(Moment::kFinalWritten, parts_.process.name());
  const Generation generation = life.order.generation;
  const std::string name = written_;
  const std::function<bool()> is_acknowledged = [this, generation, name] {
    return is_over(generation) || acknowledged_ == name;
  };
  co_await waiter_.until(is_acknowledged);
  if (acknowledged_ == name) co_return Status::ok();
  co_return Status(Code::kAborted, "closed while the final checkpoint was not in the journal");
}

void Trainer::write_now(const Manifest& manifest, const ModelState& state, bool is_final) {
  wire::CheckpointReport report;
  report.set_step(manifest.resume.step);
  report.set_final(is_final);
  const auto written = world_.disk.write_checkpoint(manifest, state);
  written_ = checkpoint_name(name_of(manifest));
  if (world_.disk.is_torn(written_)) {
    world_.trace.add("killed while it writes", parts_.process.name(), manifest.resume.step);
    return parts_.die();
  }
  write_status_ = written.status();
  report.set_name(written_);
  if (written.is_ok()) {
    report.set_manifest_sha256(written->manifest_sha256);
    report.set_weights_sha256(written->manifest.weights_sha256);
    report.set_bytes(written->bytes);
  } else {
    report.set_error(written.status().message());
  }
  world_.trace.add("checkpoint", parts_.process.name(), manifest.resume.step, is_final,
                   written_ + (written.is_ok() ? "" : ": " + written.status().message()));
  world_.moment(Moment::kCheckpointWritten, parts_.process.name());
  parts_.port.report_checkpoint(manifest.generation, std::move(report));
}

Task<Status> Trainer::install_checkpoint(Life& life) {
  parts_.gate.lost_state();
  co_await waiter_.sleep(1, 20);
  const std::string& path = life.order.start.source().checkpoint_path();
  const auto loaded = world_.disk.load_checkpoint(path);
  if (!loaded.is_ok()) co_return damaged_since(loaded.status());
  if (loaded->step != life.at.step)
    co_return Status(Code::kInternal,
                     "checkpoint " + path + " is not of step " + std::to_string(life.at.step));
  state_ = *loaded;
  resumed_from_ = path.substr(path.find_last_of('/') + 1);
  co_return Status::ok();
}

}  // namespace lockstep::sim
