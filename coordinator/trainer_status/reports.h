// Connects a run with Kubeflow Trainer, if Trainer's variables (target.h) are in the environment.
//
// Thread-safety: the loop's thread, or before the loop runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/rpc/transport.h"
#include "coordinator/trainer_status/http_sender.h"
#include "coordinator/trainer_status/status_reporter.h"

namespace lockstep::trainer {

class Reports {
 public:
  // Null if Trainer wants no reports, or if they are impossible; the log has the reason then. The
  // arguments outlive the reports.
  static std::unique_ptr<Reports> start(rpc::Loop& loop, Logger& logger, const Clock& clock,
                                        std::function<std::optional<RunProgress>()> progress);

  void finish(std::function<void()> on_finished) { reporter_.finish(std::move(on_finished)); }

 private:
  Reports(Target target, rpc::Loop& loop, Logger& logger, const Clock& clock,
          std::function<std::optional<RunProgress>()> progress);

  HttpSender sender_;
  StatusReporter reporter_;
};

}  // namespace lockstep::trainer
