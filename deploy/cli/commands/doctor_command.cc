#include <unistd.h>

#include <cstdio>
#include <memory>

#include "comm/base/text/printable.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/json_text.h"
#include "deploy/cli/base/scratch_directory.h"
#include "deploy/cli/base/stop_signals.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/doctor/diagnose.h"
#include "deploy/cli/run/load_job.h"

namespace lockstep {
namespace {

constexpr double kMostSeconds = 3'600;

struct DoctorArguments {
  std::vector<std::string> positional;
  std::string workers;
  double seconds = 40;
  bool apply = false;
  bool json = false;
};

// On stderr, so that stdout has the outcome only: in a terminal one line that is written over,
// elsewhere a line for each thing that is measured.
class Steps {
 public:
  ~Steps() {
    if (is_terminal_ && !last_.empty()) std::fputs("\r\x1b[K", stderr);
  }
  void show(const std::string& what) {
    if (what == last_) return;
    last_ = what;
    std::fprintf(stderr, is_terminal_ ? "\rmeasuring: %s\x1b[K" : "measuring: %s\n",
                 printable(what).c_str());
    std::fflush(stderr);
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string last_;
};

Result<Diagnosis> measure(const JobRequest& request, double seconds, const std::string& directory,
                          StopSignals& signals) {
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, load_job(request));
  if (is_script(job.model()))
    return Status(
        Code::kUsage,
        "lockstep doctor cannot time the loop of a script; run it, and see in lockstep top "
        "where its steps spend their time");
  Steps steps;
  DiagnoseOptions options;
  options.seconds = seconds;
  options.directory = directory;
  options.opened = [&signals] { signals.hold(); };
  options.is_cut = [&signals] { return signals.is_pending(); };
  options.progress = [&steps](const std::string& what) { steps.show(what); };
  return diagnose(job, options);
}

void print_doctor(const std::string& text) {
  print_text("%s", text.c_str());
  std::fflush(stdout);
}

Status run_doctor(const DoctorArguments& arguments) {
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  if (request.file.empty())
    return {Code::kUsage, "no job file given; try 'lockstep doctor JOB.yaml'"};
  request.workers = arguments.workers;
  StopSignals signals;
  signals.release();  // until there is something to show
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("lockstep-doctor-"));
  LOCKSTEP_ASSIGN_OR_RETURN(const Diagnosis before,
                            measure(request, arguments.seconds, scratch->path(), signals));
  if (!arguments.json) print_doctor(to_text(before));
  const auto& changes = before.finding.changes;
  if (!arguments.apply || changes.empty() || signals.is_pending()) {
    if (arguments.json) print_doctor(json_text(to_json(before)));
    signals.release();  // one that has cut the measurement ends the program now
    if (!arguments.json && arguments.apply)
      print_doctor("nothing to apply: the finding suggests no change of the job\n");
    return Status::ok();
  }
  for (const doctor::Change& change : changes)
    request.overrides.push_back(change.key + "=" + change.value);
  LOCKSTEP_ASSIGN_OR_RETURN(const Diagnosis after,
                            measure(request, arguments.seconds, scratch->path(), signals));
  if (arguments.json)
    print_doctor(json_text({{"before", to_json(before)}, {"after", to_json(after)}}));
  else
    print_doctor("\n" + compare_text(before, after));
  signals.release();
  return Status::ok();
}

constexpr char kDoctorNotes[] =
    "Measures the speed of each stage from the files to the trained model by itself, for one\n"
    "worker of the job, on the same samples, cold first. Names the stage that holds the job\n"
    "back. It writes nothing and trains nothing. Run it on a machine that does nothing else.\n"
    "Ctrl-C shows what is measured so far.\n"
    "\n"
    "Examples:\n"
    "  lockstep doctor job.yaml\n"
    "  lockstep doctor job.yaml data.threads=8 --workers 2\n"
    "  lockstep doctor job.yaml --apply          # measures again with its change\n\n"
    "Exit codes: 0 measured; 64, 65, 66, 78 as of `lockstep run`.";

}  // namespace

void add_doctor_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("doctor", "Find what holds a job back, and what to change");
  const auto arguments = std::make_shared<DoctorArguments>();
  add_job_words(*command, "JOB.yaml, and overrides of its keys: data.threads=8",
                arguments->positional);
  command->add_option("--workers,-w", arguments->workers,
                      "Workers on this machine, which share its cores (cluster.workers)");
  command
      ->add_option("--seconds", arguments->seconds,
                   "Seconds to measure, not counting the opening of the data; default 40")
      ->check(CLI::Range(1.0, kMostSeconds));
  command->add_flag("--apply", arguments->apply,
                    "Measure again with the change, and show both figures");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(kDoctorNotes);
  commands[command] = [arguments] { return report(run_doctor(*arguments)); };
}

}  // namespace lockstep
