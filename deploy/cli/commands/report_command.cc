#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/environment/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/hang_report.h"
#include "deploy/cli/watch/report_page.h"
#include "deploy/cli/watch/run_source.h"

namespace lockstep {
namespace {

constexpr size_t kMostRuns = 50;

struct ReportArguments {
  std::vector<std::string> run_dirs;
  std::string output;
};

Result<ReportData> data_of(RunSource& source) {
  ReportData data;
  LOCKSTEP_ASSIGN_OR_RETURN(data.status, source.get("status", "members=1024"));
  LOCKSTEP_ASSIGN_OR_RETURN(data.history, source.get("history", "points=1000"));
  LOCKSTEP_ASSIGN_OR_RETURN(data.events, source.get("events", "limit=1000"));
  LOCKSTEP_ASSIGN_OR_RETURN(data.job, source.get("job", ""));
  return data;
}

Result<std::string> page_of(const std::vector<std::string>& run_dirs) {
  std::vector<NamedReport> runs;
  for (const std::string& run_dir : run_dirs) {
    LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(run_dir));
    LOCKSTEP_ASSIGN_OR_RETURN(ReportData data, data_of(source));
    if (run_dirs.size() == 1) data.hang = hang_report(run_dir);
    runs.push_back({run_dir, std::move(data)});
  }
  return runs.size() == 1 ? report_page(runs[0].data, log_timestamp())
                          : comparison_page(runs, log_timestamp());
}

// The report of one run lies in its directory, the report of several in the working directory.
std::string default_path(const std::vector<std::string>& run_dirs) {
  return run_dirs.size() == 1 ? run_dirs[0] + "/report.html" : "report.html";
}

Status write_report(const ReportArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string page, page_of(arguments.run_dirs));
  if (arguments.output == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return Status::ok();
  }
  const std::string path =
      arguments.output.empty() ? default_path(arguments.run_dirs) : arguments.output;
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, page));
  print_text("%s\n", path.c_str());
  return Status::ok();
}

constexpr char kReportExamples[] =
    "Writes one HTML file with plots, ranks, generations and events of a live or ended run. After "
    "a\n"
    "hang it has the last operations of each rank, and the end of NCCL's logs. The file needs no\n"
    "network. Of several runs it has a curve for each, and the settings in which they differ.\n\n"
    "Examples:\n"
    "  lockstep report runs/first                  # writes runs/first/report.html\n"
    "  lockstep report runs/first -o shoes.html\n"
    "  lockstep report runs/first -o - > shoes.html\n"
    "  lockstep report runs/first runs/second      # writes ./report.html, to compare them\n"
    "\n"
    "Exit codes: 0 written, 66 no run there, 70 reading or writing failed.";

}  // namespace

void add_report_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("report", "Write a run as one HTML file with plots");
  const auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run-dir", arguments->run_dirs, "Run directory, or several to compare")
      ->required()
      ->expected(1, kMostRuns);
  command->add_option("--output,-o", arguments->output,
                      "File to write; default: report.html in the run directory, or here for "
                      "several runs; -: standard output");
  command->footer(kReportExamples);
  commands[command] = [arguments] { return report(write_report(*arguments)); };
}

}  // namespace lockstep
