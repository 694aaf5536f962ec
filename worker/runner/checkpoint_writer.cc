#include "worker/runner/checkpoint_writer.h"

#include <cstring>
#include <utility>

#include "comm/base/check.h"
#include "comm/run/checkpoint/state_hash.h"

namespace lockstep {

CheckpointWriter::CheckpointWriter(FileOps& files, Options options, Report report, Logger& logger)
    : files_(files),
      options_(std::move(options)),
      report_(std::move(report)),
      logger_(logger),
      thread_([this] { run(); }) {}

CheckpointWriter::~CheckpointWriter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::submit(std::span<const StateTensor> state, Manifest manifest, bool final,
                              std::optional<uint64_t> hash) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  snapshot_.assign(state.begin(), state.end());
  memory_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    memory_[i].resize(state[i].bytes);
    if (state[i].bytes > 0) std::memcpy(memory_[i].data(), state[i].data, state[i].bytes);
    snapshot_[i].data = memory_[i].data();
  }
  busy_ = true;
  outcome_.reset();
  job_ = Job{std::move(manifest), final, hash};
  lock.unlock();
  changed_.notify_all();
}

Result<CheckpointInfo> CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  LOCKSTEP_CHECK(outcome_, "wait() follows submit()");
  return *outcome_;
}

void CheckpointWriter::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void CheckpointWriter::drop(std::vector<std::string> names) {
  if (names.empty()) return;
  {
    std::lock_guard lock(mutex_);
    drop_.insert(drop_.end(), names.begin(), names.end());
  }
  changed_.notify_all();
}

void CheckpointWriter::clean_up(Generation generation) {
  {
    std::lock_guard lock(mutex_);
    clean_up_ = generation;
  }
  changed_.notify_all();
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || clean_up_ || job_ || !drop_.empty(); });
    if (clean_up_) {
      const Generation generation = *std::exchange(clean_up_, std::nullopt);
      lock.unlock();
      const Status status = remove_leftovers(files_, options_.dir, generation);
      if (!status.is_ok()) logger_.warn("checkpoint_leftovers", status.message());
      lock.lock();
    } else if (job_) {
      const Job job = *std::exchange(job_, std::nullopt);
      lock.unlock();
      write(job);
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    } else if (!drop_.empty()) {
      const std::vector<std::string> names = std::exchange(drop_, {});
      lock.unlock();
      prune(names);
      lock.lock();
    } else if (stop_) {
      return;
    }
  }
}

Result<CheckpointInfo> CheckpointWriter::write_if_unchanged(const Job& job) {
  if (!job.hash || hash_of(snapshot_) == *job.hash)
    return write_checkpoint(files_, options_.dir, snapshot_, job.manifest);
  return Status(Code::kInternal,
                "the weights changed after step " + std::to_string(job.manifest.resume.step) +
                    ", although no step was applied: a memory or a processor of this machine is at "
                    "fault, and nothing reported an error. Test this machine");
}

void CheckpointWriter::write(const Job& job) {
  Result<CheckpointInfo> info = write_if_unchanged(job);
  wire::CheckpointReport report;
  report.set_step(job.manifest.resume.step);
  report.set_final(job.final);
  report.set_name(checkpoint_name(name_of(job.manifest)));
  if (info.is_ok()) {
    report.set_manifest_sha256(info->manifest_sha256);
    report.set_weights_sha256(info->manifest.weights_sha256);
    report.set_bytes(info->bytes);
    logger_.info("checkpoint_written", "checkpoint " + info->name + " is written",
                 {{"step", report.step()}, {"bytes", info->bytes}});
  } else {
    report.set_error(info.status().message());
    logger_.error("checkpoint_failed", info.status().message(), {{"step", report.step()}});
  }
  report_(job.manifest.generation, std::move(report));
  std::lock_guard lock(mutex_);
  outcome_ = std::move(info);
}

void CheckpointWriter::prune(const std::vector<std::string>& names) {
  auto deleted = prune_checkpoints(files_, options_.dir, names, options_.keep);
  if (!deleted.is_ok())
    logger_.warn("checkpoint_prune_failed", deleted.status().message());
  else if (*deleted > 0)
    logger_.info("checkpoints_pruned", "deleted old checkpoints", {{"count", *deleted}});
}

}  // namespace lockstep
