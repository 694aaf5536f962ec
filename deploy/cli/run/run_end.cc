#include "deploy/cli/run/run_end.h"

#include <cstdio>
#include <filesystem>

#include "comm/rundir/layout.h"
#include "comm/rundir/run_files.h"
#include "coordinator/checkpoint/store.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/run/longer_run.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {
namespace {

bool has_checkpoint(const RunDir& dir) {
  const auto checkpoints = list_checkpoints(dir.file(rundir::kCheckpoints));
  return checkpoints.is_ok() && !checkpoints->empty();
}

bool has_steps(const RunDir& dir) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(dir.file(rundir::kHistory), error);
  return (!error && bytes > 0) || has_checkpoint(dir);
}

void tell_stopped(RunDir& dir, const std::string& again) {
  if (has_checkpoint(dir)) {
    std::printf("stopped with a checkpoint; continue with: %s\n", again.c_str());
  } else if (has_steps(dir)) {
    std::printf("stopped without a checkpoint; begin again with: %s\n", again.c_str());
  } else if (dir.discard()) {
    std::printf("stopped before the first step; nothing was kept, begin again as before\n");
  } else {
    std::printf("stopped before the first step; begin again with: %s\n", again.c_str());
  }
}

// A generation has trained. What it computed may be cut from the history, where samples did harm,
// and is looked into all the same (lockstep replay).
bool has_trained(const RunDir& dir) {
  const auto summary = read_summary(dir.path());
  return has_steps(dir) || (summary.is_ok() && summary->value("generations", 0) > 0);
}

// Where something went wrong before any training there is nothing to go on from or to look into.
void tell_failed(int code, RunDir& dir) {
  constexpr int kFailed = 70;  // its logs are wanted
  if (code != kFailed && !has_trained(dir) && dir.discard())
    std::fprintf(stderr, "lockstep: ended with code %d; removed the new run directory %s\n", code,
                 dir.path().c_str());
  else
    std::fprintf(stderr, "lockstep: ended with code %d; logs are in %s\n", code,
                 dir.file(rundir::kLogs).c_str());
}

}  // namespace

int tell_end(const RunEnd& end, RunDir& dir, const std::string& again) {
  const auto summary = read_summary(dir.path());
  if (end.exit_code == 0 && summary.is_ok())
    std::printf("\ndone\n%s%s", summary_table(*summary, dir.path()).c_str(),
                next_commands(dir.path()).c_str());
  else if (end.exit_code == 75)
    tell_stopped(dir, again);
  std::fflush(stdout);
  if (!end.trouble.empty()) {  // else the coordinator has said what happened and what to do
    std::fprintf(stderr, "lockstep: %s\n", end.trouble.c_str());
    if (end.exit_code == 70)
      std::fprintf(stderr, "lockstep: continue from the last checkpoint with: %s\n", again.c_str());
  }
  if (end.exit_code != 0 && end.exit_code != 75) tell_failed(end.exit_code, dir);
  return end.exit_code;
}

int tell_done_already(const RunDir& dir, const wire::JobSpec& job) {
  const auto summary = read_summary(dir.path());
  if (!summary.is_ok()) return report(summary.status());
  const auto facts = read_data_facts(dir.path());
  const std::string why = facts.is_ok() ? ": " + what_ends(job, *facts) : "";
  std::printf("this run is done already%s\n%s%s", why.c_str(),
              summary_table(*summary, dir.path()).c_str(), next_commands(dir.path()).c_str());
  return 0;
}

}  // namespace lockstep
