// Writes checkpoints while the training goes on. submit() copies the state at the step boundary; a
// side thread writes the files, one checkpoint at a time.
//
//   training thread ── submit(): wait for the one before, copy ──▶ side thread: write, report,
//   prune
//
// Waiting instead of skipping keeps the set of checkpoints a function of the job, not of the disk.
//
// Thread-safety: submit() and wait() from one thread; drop() from any. `report` is called on the
// side thread. The destructor waits for the checkpoint in flight.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/run/checkpoint/store.h"
#include "comm/wire/control.pb.h"

namespace lockstep {

class CheckpointWriter {
 public:
  struct Options {
    std::string dir;    // RUN_DIR/checkpoints
    uint32_t keep = 2;  // newest that stay
  };
  // One per submit(), with the outcome either way.
  using Report = std::function<void(Generation generation, wire::CheckpointReport report)>;

  CheckpointWriter(FileOps& files, Options options, Report report, Logger& logger);
  ~CheckpointWriter();

  // Copies `state` before it returns. `hash`: of the state as members compared it (state_hash.h); a
  // copy with another hash is not written, and the outcome is kInternal.
  void submit(std::span<const StateTensor> state, Manifest manifest, bool final,
              std::optional<uint64_t> hash = std::nullopt);

  // Waits for the checkpoint that was submitted last; returns its outcome. REQUIRES: submit().
  Result<CheckpointInfo> wait();

  // Waits until the checkpoint in flight is written and reported.
  void settle();

  // Lets the side thread delete these: the coordinator needs them no longer.
  void drop(std::vector<std::string> names);

  // Lets the side thread first delete the files that crashed writers of earlier generations left.
  void clean_up(Generation generation);

 private:
  struct Job {
    Manifest manifest;
    bool final = false;
    std::optional<uint64_t> hash;
  };

  void run();
  Result<CheckpointInfo> write_if_unchanged(const Job& job);
  void write(const Job& job);
  void prune(const std::vector<std::string>& names);

  FileOps& files_;
  const Options options_;
  const Report report_;
  Logger& logger_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool busy_ = false;  // `job_` waits or is being written
  std::optional<Generation> clean_up_;
  std::optional<Job> job_;
  std::vector<std::string> drop_;
  std::optional<Result<CheckpointInfo>> outcome_;

  // The copy; owned by the training thread until busy_, then by the side thread.
  std::vector<StateTensor> snapshot_;
  std::vector<std::vector<std::byte>> memory_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep
