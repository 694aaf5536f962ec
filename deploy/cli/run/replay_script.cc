#include "deploy/cli/run/replay_script.h"

#include <signal.h>

#include <cstdlib>

#include "comm/base/file.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/base/scratch_directory.h"
#include "worker/replay/script_plan.h"

namespace lockstep {

Result<int> replay_script(const std::string& run_dir, Step step) {
  // Locks the run until the end: no process can resume it meanwhile.
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, ReplaySource::open(run_dir, step));
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::ReplayPlan plan, make_script_plan(*source));
  LOCKSTEP_ASSIGN_OR_RETURN(const WorkerLaunch launch,
                            worker_launch(plan.job(), sibling_program(""), std::getenv));
  LOCKSTEP_RETURN_IF_ERROR(check_python(launch));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("lockstep-replay-"));
  const std::string path = scratch->path() + "/plan";
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, plan.SerializeAsString()));
  ProcessSpec spec{.argv = launch.words, .output_path = "", .parent_death_signal = SIGKILL};
  spec.env = launch.env;
  spec.env.push_back("LOCKSTEP_REPLAY=" + path);
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  const ProcessEnd end = wait_for_end(pid);
  if (end.exit_code >= 0) return end.exit_code;
  return Status(Code::kInternal, "the process of the script " + end.text());
}

}  // namespace lockstep
