#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/clock.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/job_words.h"
#include "deploy/cli/job/job_help.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/run/check_resume.h"
#include "deploy/cli/run/load_job.h"
#include "deploy/cli/run/run_in_directory.h"

namespace lockstep {
namespace {

struct RunArguments {
  std::vector<std::string> positional;
  std::string workers;
  std::string run_dir;
  std::string trace;
  bool resume = false;
  std::string from_checkpoint;
  bool print_config = false;
  std::string section;  // of the job file, for help
  bool markdown = false;
};

// "steps=10:20" is train.trace with its unit in front, as --trace names what is traced.
Status add_trace(const std::string& trace, JobRequest& request) {
  constexpr std::string_view kSteps = "steps=";
  if (trace.empty()) return Status::ok();
  if (!trace.starts_with(kSteps))
    return Status(Code::kUsage,
                  "--trace is \"" + trace + "\" but must name steps, as in steps=10:20");
  request.overrides.push_back("train.trace=" + trace.substr(kSteps.size()));
  return Status::ok();
}

// The job, from the command line and, on a resume, from what the run directory holds.
Result<wire::JobSpec> job_of(const RunArguments& arguments) {
  JobRequest request;
  LOCKSTEP_RETURN_IF_ERROR(split_arguments(arguments.positional, request));
  request.workers = arguments.workers;
  LOCKSTEP_RETURN_IF_ERROR(add_trace(arguments.trace, request));
  if (!arguments.resume && !arguments.from_checkpoint.empty())
    return Status(Code::kUsage,
                  "--from-checkpoint goes on with a run: give --resume and --run-dir");
  if (!arguments.resume) return load_job(request);
  if (arguments.run_dir.empty())
    return Status(Code::kUsage, "--resume needs --run-dir, the directory of the run to continue");
  const std::string kept = rundir::file_in(arguments.run_dir, rundir::kJobText);
  if (request.file.empty() && std::filesystem::exists(kept)) request.file = kept;
  const auto stored = stored_job(arguments.run_dir);
  if (stored.is_ok()) {
    request.stored = &*stored;
    return load_job(request);
  }
  // job.yaml has every key of the job; what identifies the run is compared with the journal.
  if (!request.file.empty() && stored.status().code() != Code::kUsage) return load_job(request);
  if (stored.status().code() == Code::kNoInput)
    return Status(Code::kNoInput, "there is no run to resume in " + arguments.run_dir +
                                      "; start one without --resume");
  return stored.status();
}

int run_job(const RunArguments& arguments) {
  StopSignals signals;
  const auto job = job_of(arguments);
  if (!job.is_ok()) return report(job.status());
  if (arguments.print_config) {
    std::fputs(job_yaml(*job).c_str(), stdout);
    return finish_output(0);
  }
  auto dir = arguments.run_dir.empty()
                 ? RunDir::make_new(default_run_dir(job->job(), SystemClock().wall_ms()))
                 : RunDir::open(arguments.run_dir, arguments.resume);
  if (!dir.is_ok()) return report(dir.status());
  RunPlan plan;
  plan.resume = arguments.resume;
  plan.from_checkpoint = arguments.from_checkpoint;
  plan.again = "lockstep run --resume --run-dir " + shell_word(dir->path());
  plan.agent_words = {"--workers", std::to_string(job->cluster().workers()), "--plain-logs"};
  Reporter reporter(Screen::of_stdout());
  return run_in(*dir, plan, *job, signals, reporter);
}

int help_job(const RunArguments& arguments) {
  const auto& words = arguments.positional;  // "--help-job --markdown data" has it there
  const bool is_among_words = arguments.markdown && arguments.section.empty() && !words.empty();
  const std::string section = is_among_words ? words[0] : arguments.section;
  const Result<std::string> help = arguments.markdown ? job_section_table(section)
                                   : section.empty()  ? Result<std::string>(job_help())
                                                      : job_section_help(section);
  if (!help.is_ok()) return report(help.status());
  std::fputs(help->c_str(), stdout);
  return finish_output(0);
}

constexpr char kRunExamples[] =
    "Examples:\n"
    "  lockstep run job.yaml\n"
    "  lockstep run job.yaml --workers 4 --run-dir runs/first train.epochs=3 optimizer.lr=2e-3\n"
    "  lockstep run --resume --run-dir runs/first train.epochs=10 --workers 2\n"
    "  lockstep run train.py --workers 4 train.epochs=3 -- --lr 0.1   # words behind -- are its "
    "own\n"
    "  lockstep run -m proj.train --workers 4 -- --lr 0.1   # a module, as python -m takes it\n"
    "  lockstep run job.yaml --print-config\n"
    "  lockstep run --help-job\n"
    "  lockstep run --help-job data\n"
    "\n"
    "Exit codes: 0 done, 64 bad usage or job file, 65 bad data, 66 data not found, 70 failed,\n"
    "75 stopped (run again with --resume), 78 cannot work on this machine.";

}  // namespace

void add_run_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("run", "Train: one job, from its file to its results");
  const auto arguments = std::make_shared<RunArguments>();
  add_job_words(*command, kJobWords, arguments->positional);
  command->add_option("--workers,-n", arguments->workers, "Worker processes (cluster.workers)");
  command->add_option("--run-dir,-d", arguments->run_dir,
                      "Directory for all files of the run; default runs/<job>-<time>");
  command->add_option("--trace", arguments->trace,
                      "Write a timeline of some steps into RUN_DIR/trace: steps=10:20");
  command->add_flag("--resume", arguments->resume,
                    "Continue the run in --run-dir; keys that are not given stay as they were");
  command
      ->add_option(
          "--from-checkpoint", arguments->from_checkpoint,
          "With --resume: best goes back to the best checkpoint (checkpoint.best); NAME, for a run "
          "whose journal is lost, rebuilds it from this checkpoint")
      ->option_text("best|NAME");
  command->add_flag("--print-config", arguments->print_config, "Print the resolved job, and end");
  const auto* const help = command
                               ->add_option("--help-job", arguments->section,
                                            "Print the keys of a section of the job file (all: all "
                                            "keys); without a section, list them")
                               ->option_text("[SECTION]")
                               ->expected(0, 1);
  command->add_flag("--markdown", arguments->markdown, "With --help-job: as a table for a page")
      ->group("");
  command->footer(kRunExamples);
  commands[command] = [arguments, help] {
    return help->count() > 0 ? help_job(*arguments) : run_job(*arguments);
  };
}

}  // namespace lockstep
