// Decides when to report the run's progress to Kubeflow Trainer, and logs failures.
//
//   every kLookMs ─▶ is a report due? ─▶ progress() ─▶ send ─▶ done: delivered, or again later
//
// Invariants
//   1. One report at a time, and kEveryMs between the beginnings of two. But the first report with
//      the end of the run goes as soon as none is under way.
//   2. It does not repeat a delivered report.
//   3. A failure only adds a line to the log, at most one in kRepeatMs.
//   4. finish() calls back once, after kFinishMs at the latest.
//
// Thread-safety: the loop's thread, or before the loop runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/rpc/transport.h"
#include "coordinator/trainer_status/body.h"

namespace lockstep::trainer {

inline constexpr int64_t kLookMs = 500;
inline constexpr int64_t kEveryMs = 5'000;     // as in Kubeflow's own SDK
inline constexpr int64_t kTimeoutMs = 3'000;   // of one report
inline constexpr int64_t kFinishMs = 3'000;    // how long the process waits for the last one
inline constexpr int64_t kRepeatMs = 600'000;  // between two lines about failures

class StatusReporter {
 public:
  using Done = std::function<void(const Status&)>;
  // All outlive the reporter.
  struct Parts {
    rpc::Loop& loop;
    Logger& logger;
    const Clock& clock;                                    // for the time in the body
    std::function<std::optional<RunProgress>()> progress;  // none: nothing to report now
    // Calls `done` once, on the loop's thread, not from inside, and never after this object's end.
    std::function<void(std::string body, int64_t timeout_ms, Done done)> send;
  };
  explicit StatusReporter(Parts parts);
  ~StatusReporter();
  StatusReporter(const StatusReporter&) = delete;
  StatusReporter& operator=(const StatusReporter&) = delete;

  void start();

  // Reports the last state, if it is not delivered yet, and calls `on_finished`. No report follows.
  void finish(std::function<void()> on_finished);

 private:
  void look();
  bool is_due(const RunProgress& progress) const;
  void report(RunProgress progress);
  void on_done(const RunProgress& told, const Status& status);
  void note(const Status& status);
  void tell_the_end();
  void finished();

  Parts parts_;
  rpc::TimerId timer_ = 0;
  rpc::TimerId deadline_timer_ = 0;
  bool is_sending_ = false;
  bool is_over_ = false;
  std::optional<int64_t> last_ms_;        // when a report began
  std::optional<RunProgress> delivered_;  // last
  bool has_tried_end_ = false;

  uint64_t failures_ = 0;  // since the last delivery
  std::optional<int64_t> complained_ms_;
  bool is_complaint_open_ = false;  // the log has a failure, and no delivery since

  std::function<void()> on_finished_;  // set: finish() was called
  int64_t finish_by_ms_ = 0;
};

}  // namespace lockstep::trainer
