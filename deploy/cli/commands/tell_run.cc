#include "deploy/cli/commands/tell_run.h"

#include <cstdio>

#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/command_client.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {

int tell_run(const std::string& run_dir, const wire::Command& command) {
  const auto answer = send_command(run_dir, command, limits::kCommandMs);
  if (answer.status().code() == Code::kUnavailable) {
    report(Status(Code::kUnavailable,
                  "the run in " + run_dir + " is not running: " + answer.status().message() +
                      "; see 'lockstep status --run-dir " + shell_word(run_dir) + "'"));
    return kNotRunning;
  }
  if (!answer.is_ok())
    return report(answer.status().with_context(run_dir + " is not the directory of a live run"));
  if (!answer->ok()) return report(Status(Code::kUsage, answer->message()));
  print_text("%s\n", answer->message().c_str());
  return 0;
}

}  // namespace lockstep
