#include <cstdio>
#include <memory>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/inherited/standard_streams.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/report_page.h"
#include "deploy/cli/watch/run_source.h"

namespace lockstep {
namespace {

struct ReportArguments {
  std::string run_dir;
  std::string output;
};

Status write_report(const ReportArguments& arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSource source, RunSource::open(arguments.run_dir));
  ReportData data;
  data.made = log_timestamp();
  LOCKSTEP_ASSIGN_OR_RETURN(data.status, source.get("status", "members=1024"));
  LOCKSTEP_ASSIGN_OR_RETURN(data.history, source.get("history", "points=1000"));
  LOCKSTEP_ASSIGN_OR_RETURN(data.events, source.get("events", "limit=1000"));
  const std::string page = report_page(data);
  if (arguments.output == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return Status::ok();
  }
  const std::string path =
      arguments.output.empty() ? source.run_dir() + "/report.html" : arguments.output;
  LOCKSTEP_RETURN_IF_ERROR(replace_file(path, page));
  print_text("%s\n", path.c_str());
  return Status::ok();
}

constexpr char kReportExamples[] =
    "Writes one HTML file with plots, ranks, generations and events of a live or ended run. The "
    "file\n"
    "needs no network.\n\n"
    "Examples:\n"
    "  lockstep report runs/first                  # writes runs/first/report.html\n"
    "  lockstep report runs/first -o shoes.html\n"
    "  lockstep report runs/first -o - > shoes.html\n"
    "\n"
    "Exit codes: 0 written, 66 no run there, 70 reading or writing failed.";

}  // namespace

void add_report_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("report", "Write a run as one HTML file with plots");
  const auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run-dir", arguments->run_dir, "Run directory")->required();
  command->add_option(
      "--output,-o", arguments->output,
      "File to write; default: report.html in the run directory; -: standard output");
  command->footer(kReportExamples);
  commands[command] = [arguments] { return report(write_report(*arguments)); };
}

}  // namespace lockstep
