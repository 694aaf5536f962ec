#include "coordinator/trainer_status/reports.h"

#include <cstdlib>
#include <utility>

namespace lockstep::trainer {

Reports::Reports(Target target, rpc::Loop& loop, Logger& logger, const Clock& clock,
                 std::function<std::optional<RunProgress>()> progress)
    : sender_(loop, std::move(target)),
      reporter_({loop, logger, clock, std::move(progress),
                 [this](std::string body, int64_t timeout_ms, StatusReporter::Done done) {
                   sender_.send(std::move(body), timeout_ms, std::move(done));
                 }}) {
  reporter_.start();
}

std::unique_ptr<Reports> Reports::start(rpc::Loop& loop, Logger& logger, const Clock& clock,
                                        std::function<std::optional<RunProgress>()> progress) {
  auto target = target_of([](const char* name) -> const char* { return std::getenv(name); });
  if (!target.is_ok()) {
    logger.warn("trainer_status_off",
                "not reporting progress to Kubeflow Trainer: " + target.status().message());
    return nullptr;
  }
  if (!*target) return nullptr;
  logger.info("trainer_status",
              "reporting progress to Kubeflow Trainer at " + rpc::to_string((*target)->address));
  return std::unique_ptr<Reports>(
      new Reports(std::move(**target), loop, logger, clock, std::move(progress)));
}

}  // namespace lockstep::trainer
