// lockstep-coordinator --run-dir DIR [--resume | --take-over [--after TERM]] [--seat NAME]
// [--version]

#include <signal.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "comm/base/build_info.h"
#include "comm/base/status.h"
#include "comm/environment/process_limit.h"
#include "comm/environment/standard_streams.h"
#include "coordinator/coordinator_process.h"

namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  lockstep-coordinator --run-dir runs/first              # a new run\n"
    "  lockstep-coordinator --run-dir runs/first --resume     # from its newest checkpoint\n"
    "  lockstep-coordinator --run-dir runs/first --take-over  # while its workers train on\n"
    "  lockstep-coordinator --run-dir runs/first --take-over --after 3  # after a lost machine\n"
    "\n"
    "Exit codes: 0 done, 64 bad usage, 65 bad data, 66 data not found, 70 failed, 75 stopped with "
    "a\ncheckpoint, 78 cannot work here.";

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of a call
  using lockstep::coordinator::BeginMode;
  lockstep::secure_standard_streams();
  lockstep::explain_missing_threads();
  CLI::App app("The coordinator of one run; `lockstep run` starts it.", "lockstep-coordinator");
  lockstep::coordinator::SeatRequest request;
  bool resume = false;
  app.add_option("--run-dir", request.run_dir, "Run directory from `lockstep run`")->required();
  auto* resumes =
      app.add_flag("--resume", resume, "Continue from the newest checkpoint of the run");
  auto* takes_over = app.add_flag("--take-over", request.is_take_over,
                                  "Replace a coordinator that died while its workers train on")
                         ->excludes(resumes);
  app.add_option("--after", request.after,
                 "The last term of a coordinator whose machine is lost: claim the next one")
      ->needs(takes_over);
  app.add_option("--seat", request.seat,
                 "Name of the process that keeps this coordinator alive, e.g. node-b:812:5bd1");
  int last_words = -1;
  app.add_option("--last-words-fd", last_words,
                 "Descriptor of memory from `lockstep run`, for the reason of a failure");
  app.footer(kExamples);
  app.set_version_flag("--version", "lockstep-coordinator " +
                                        std::string(lockstep::build_info().version) + " (" +
                                        std::string(lockstep::build_info().revision) + ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : lockstep::exit_code({lockstep::Code::kUsage, ""});
  }
  const BeginMode mode = request.is_take_over ? BeginMode::kTakeOver
                         : resume             ? BeginMode::kResume
                                              : BeginMode::kFirst;
  return lockstep::coordinator::run_coordinator(std::move(request), mode, last_words);
}
