#include "deploy/cli/run/run_end.h"

#include <cstdio>
#include <filesystem>

#include "comm/environment/standard_streams.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/agent/exit_decision.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/run/extend_run.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {
namespace {

bool has_steps(const RunDir& dir) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(dir.file(rundir::kHistory), error);
  return (!error && bytes > 0) || has_checkpoint(dir.path());
}

// Why the coordinator ended the run: its sentence, without what remains.
std::string reason_of_end(const Result<nlohmann::json>& summary) {
  const std::string message = summary.is_ok() ? summary->value("message", "") : "";
  return message.empty() ? "stopped" : message.substr(0, message.find("; "));
}

void tell_stopped(RunDir& dir, const Result<nlohmann::json>& summary, const std::string& again) {
  if (const auto steps = newest_checkpoint_step(dir.path())) {
    print_text("%s; the newest checkpoint has %s steps; continue with: %s\n",
               reason_of_end(summary).c_str(), grouped(*steps).c_str(), again.c_str());
  } else if (has_steps(dir)) {
    print_text("stopped without a checkpoint; begin again with: %s\n", again.c_str());
  } else if (dir.discard()) {
    print_text("stopped before the first step; nothing was kept, begin again as before\n");
  } else {
    print_text("stopped before the first step; begin again with: %s\n", again.c_str());
  }
}

// True if a generation has trained. Its steps may be cut from the history because of bad samples,
// but lockstep replay can still look at them.
bool has_trained(const RunDir& dir) {
  const auto summary = read_summary(dir.path());
  return has_steps(dir) || (summary.is_ok() && summary->value("generations", 0) > 0);
}

// After an error before any training there is nothing to go on from or to look into.
void tell_failed(int code, RunDir& dir) {
  constexpr int kFailed = 70;  // its logs are wanted
  if (!std::filesystem::exists(dir.path()))
    print_error("lockstep: ended with code %d; the logs went with the run directory\n", code);
  else if (code != kFailed && !has_trained(dir) && dir.discard())
    print_error("lockstep: ended with code %d; removed the new run directory %s\n", code,
                dir.path().c_str());
  else
    print_error("lockstep: ended with code %d; logs are in %s\n", code,
                dir.file(rundir::kLogs).c_str());
}

}  // namespace

int tell_end(const RunEnd& end, RunDir& dir, const std::string& again) {
  const auto summary = read_summary(dir.path());
  if (end.is_complete && summary.is_ok())
    print_text("\ndone\n%s%s", summary_table(*summary, dir.path()).c_str(),
               next_commands(dir.path()).c_str());
  else if (end.exit_code == kCheckpointedExit)
    tell_stopped(dir, summary, again);
  std::fflush(stdout);
  if (!end.trouble.empty()) {  // else the coordinator has said what happened and what to do
    print_error("lockstep: %s\n", end.trouble.c_str());
    if (end.exit_code == 70 && std::filesystem::exists(dir.path()))
      print_error("lockstep: %s with: %s\n",
                  has_checkpoint(dir.path()) ? "continue from the last checkpoint"
                                             : "there is no checkpoint; begin again",
                  again.c_str());
  }
  if (is_failure(end.exit_code)) tell_failed(end.exit_code, dir);
  return end.exit_code;
}

int tell_done_already(const RunDir& dir, const wire::JobSpec& job) {
  const auto summary = read_summary(dir.path());
  if (!summary.is_ok()) return report(summary.status());
  const auto facts = read_data_facts(dir.path());
  const Step steps = summary->value("steps", ~Step{0});
  const std::string why = !facts.is_ok() || facts->open() ? ""
                          : is_ended_by_patience(job, *facts, steps)
                              ? ": train.patience is " + std::to_string(job.train().patience())
                              : ": " + what_ends(job, *facts);
  print_text("this run is done already%s\n%s%s", why.c_str(),
             summary_table(*summary, dir.path()).c_str(), next_commands(dir.path()).c_str());
  return 0;
}

}  // namespace lockstep
