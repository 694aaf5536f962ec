#include "deploy/agent/hosted_coordinator.h"

#include <signal.h>

#include "comm/run/directory/claim.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/agent/exit_decision.h"

namespace lockstep {

HostedCoordinator::HostedCoordinator(HostedCoordinatorOptions options, Logger& logger)
    : options_(std::move(options)), seat_(new_seat(options_.node)), logger_(logger) {}

std::optional<int> HostedCoordinator::look(int64_t now_ms) {
  if (is_spent_ || (is_running() && !serves())) return std::nullopt;
  const auto pulse = read_pulse(options_.run_dir);
  const Term newest = newest_claimed(options_.run_dir);
  switch (watch_.see(pulse, newest, now_ms)) {
    case PulseWatch::Verdict::kWait:
      return std::nullopt;
    case PulseWatch::Verdict::kEnded:
      return pulse->exit_code;
    case PulseWatch::Verdict::kLost:
      break;
  }
  watch_.forget();
  if (is_running()) {
    logger_.warn("coordinator_hangs", "killing the coordinator on this node, which hangs");
    signal(SIGKILL);
    return std::nullopt;
  }
  if (!options_.may_claim) return std::nullopt;
  logger_.warn("coordinator_machine_lost",
               "no sign of life from the coordinator for " + std::to_string(kStillMs / 1000) +
                   " s: this node claims the run",
               {{"term", newest + 1}});
  start({"--after", std::to_string(newest)}, now_ms);
  return std::nullopt;
}

void HostedCoordinator::start(const std::vector<std::string>& words, int64_t now_ms) {
  std::vector<std::string> argv = {options_.program, "--run-dir", options_.run_dir,
                                   "--take-over",    "--seat",    seat_};
  argv.insert(argv.end(), words.begin(), words.end());
  const std::string node = options_.log_node.empty() ? "" : "-" + options_.log_node;
  const std::string output = rundir::log_in(options_.run_dir, "coordinator" + node + ".stderr");
  started_ms_ = now_ms;
  const auto pid = start_process({std::move(argv), output, SIGTERM});
  if (pid.is_ok()) {
    pid_ = *pid;
  } else {
    is_spent_ = true;
    logger_.error("coordinator_not_started", pid.status().message());
  }
}

void HostedCoordinator::start_again(int64_t now_ms) {
  if (!is_running() && !is_spent_) start({}, now_ms);
}

HostedCoordinator::Ended HostedCoordinator::ended(const Reaped& reaped, int64_t now_ms) {
  if (!is_running() || reaped.pid != pid_) return {};
  pid_ = 0;
  logger_.info("coordinator_ended", "the coordinator here (pid " + std::to_string(reaped.pid) +
                                        ") " + reaped.end.text());
  if (!reaped.end.is_death() ||
      reaped.end.cannot_run()) {  // a trouble that it has named comes again
    is_spent_ = is_failure(reaped.end.exit_code);
    return {true, std::nullopt};
  }
  quick_deaths_ = now_ms - started_ms_ < limits::kQuickDeathMs ? quick_deaths_ + 1 : 0;
  is_spent_ = budget_.left(now_ms) == 0;
  if (is_spent_) return {true, std::nullopt};
  budget_.spend(now_ms);
  return {true, restart_pause_ms(quick_deaths_)};
}

// Before that it has no pulse of its own.
bool HostedCoordinator::serves() const {
  const auto file = read_coordinator_file(options_.run_dir);
  return file.is_ok() && file->pid == pid_;
}

void HostedCoordinator::signal(int signal) const {
  if (is_running()) ::kill(pid_, signal);
}

}  // namespace lockstep
