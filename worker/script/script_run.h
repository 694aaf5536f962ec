// An ls_run (core.h): a script's process from its job to its end, in four stages.
//
//   opened ── declare() or open_data() ──▶ has data ── lay_out() ──▶ has a layout ── begin() ──▶
//   runs ── close()
//
// begin() starts the threads: in a worker, the loop's (session, /metrics, signals) and the training
// thread; alone, only the training thread. All of them block the signals that they do not handle.
//
// Errors: kUsage for a call in the wrong stage.
//
// Thread-safety: Python's main thread; request_stop() from any.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "worker/process/worker.h"
#include "worker/script/batch_handle.h"
#include "worker/script/desk.h"
#include "worker/script/script_data.h"
#include "worker/script/script_engine.h"
#include "worker/script/script_eval.h"
#include "worker/script/script_layout.h"
#include "worker/script/script_replay.h"

namespace lockstep {

// The facts that a script's process registers with.
struct ScriptSaid {
  std::vector<std::string> fingerprint;
  std::vector<wire::IdentityFact> identity;
  std::string state_hash;  // Register
  std::string code_hash;
};

class ScriptRun {
 public:
  // `worker`: null: alone.
  static Result<std::unique_ptr<ScriptRun>> open(std::optional<WorkerOptions> worker,
                                                 wire::JobSpec job);
  // Alone, over these steps.
  static Result<std::unique_ptr<ScriptRun>> open_replay(wire::ReplayPlan plan);
  ~ScriptRun();

  const wire::JobSpec& job() const { return job_; }
  const std::string& job_lines() const { return job_lines_; }

  Status set_turns(uint32_t turns);
  bool is_check(Step applied) const;
  Status declare(uint64_t samples, std::string fingerprint);
  // Opens the job's own data, and returns the samples of an epoch. `cache`: for a run without a
  // directory, if the job names no cache.
  Result<uint64_t> open_data(const char* cache, EvalData eval);
  // The number of the job's evaluation samples. REQUIRES: open_data() opened them.
  uint64_t eval_samples() const { return data_->eval()->samples(); }
  // Nothing: the slot has no samples.
  Result<std::optional<ls_task>> task(Step step, uint32_t slot) const;
  Status indices(const ls_task& task, std::span<uint64_t> out) const;
  // After open_data(). The caller's, until ls_batch_free().
  Result<std::unique_ptr<ls_batch_handle>> batch(const ls_task& task);
  // The same of the job's evaluation data.
  Result<std::unique_ptr<ls_batch_handle>> eval_batch(uint64_t begin, uint64_t end);

  // The module of the device on which the script computes. Before begin().
  Status open_device(const std::string& path);
  Status lay_out(ScriptFacts facts);
  const ScriptLayout& layout() const { return *layout_; }
  // The script evaluates, too; without a fingerprint on the job's data. Before begin(), once for
  // each of its evaluations.
  Status evaluate(ScriptEvalFacts facts);

  // `lrs`: one for each turn.
  Status begin(ScriptSaid said, const double* lrs);
  // kUsage before begin().
  Result<ScriptEngine*> engine();
  Desk& desk() { return desk_; }

  void request_stop();
  // Joins, or ends the process with `exit_code`.
  void close(int exit_code);
  // The memory of the layout outlives the run: a script may keep gradients, which lie there.
  void leave_layout() { static_cast<void>(layout_.release()); }

 private:
  ScriptRun(std::optional<WorkerOptions> worker, wire::JobSpec job);

  Status has_no_data() const;
  Result<std::unique_ptr<ScriptEngine>> make_engine(const Engine::BufferFactory& make_buffer);
  Status start_worker();
  Status start_alone();
  void serve();
  void train_alone();
  DeskEnd replay();

  const std::optional<WorkerOptions> options_;
  const wire::JobSpec job_;
  std::string job_lines_;
  uint32_t turns_ = 1;
  RunShape shape_;
  OrderSpec order_;
  std::unique_ptr<ScriptData> data_;      // null: the script's own
  std::unique_ptr<DeviceModule> module_;  // null: the script brings gradients to the host
  std::unique_ptr<ScriptLayout> layout_;
  ScriptEvals evals_;
  ScriptSaid said_;
  std::vector<double> lrs_;
  Desk desk_;
  std::atomic<ScriptEngine*> engine_{nullptr};  // since it is built
  std::unique_ptr<ScriptReplay> replay_;        // null: it is none
  std::unique_ptr<ScriptEngine> own_engine_;    // alone
  std::unique_ptr<Worker> worker_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> has_finished_{false};  // of a worker: nothing of the run is left to do
  std::promise<void> trained_;
  std::future<void> training_over_;
  std::thread training_;
  std::thread loop_;
  bool has_begun_ = false;
};

}  // namespace lockstep
