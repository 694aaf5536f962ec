// `lockstep runs`: a table of runs, to find one and to compare them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "comm/environment/standard_streams.h"
#include "comm/run/job/data_formats.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/json_text.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/run_list.h"
#include "deploy/cli/watch/top_frame.h"

namespace lockstep {
namespace {

struct RunsArguments {
  std::vector<std::string> directories;
  bool json = false;
};

using TableRow = std::vector<std::string>;

bool is_of_tokens(const wire::JobSpec& job) {
  return is_token_format(job.data().train().format());
}

template <typename Write>
std::string text_or_dash(const std::optional<double>& value, const Write& write) {
  return value ? write(*value) : "-";
}

std::string result_of(const ListedRun& run) {
  if (is_of_tokens(run.job))
    return text_or_dash(run.eval_loss, [](double loss) { return "ppl " + perplexity_text(loss); });
  return text_or_dash(run.eval_accuracy, [](double share) { return percent(share, 2); });
}

TableRow row_of(const ListedRun& run,
                const std::vector<std::pair<std::string, std::string>>& values) {
  std::string differs;
  for (const auto& [key, value] : values)
    differs += (differs.empty() ? "" : " ") + key + "=" + value;
  return {run.path,
          run.state,
          run.job.model().name(),
          grouped(run.step),
          text_or_dash(run.eval_loss, [](double loss) { return fixed(loss, 4); }),
          result_of(run),
          text_or_dash(run.samples_per_second, [](double rate) { return rate_text(rate); }),
          text_or_dash(run.wall_seconds, [](double seconds) { return duration_text(seconds); }),
          differs};
}

void print_table(const std::vector<TableRow>& rows) {
  constexpr size_t kFirstNumber = 3;
  std::vector<size_t> widths(rows[0].size());
  for (const TableRow& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  for (const TableRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - columns(row[i]), ' ');
      const bool is_last = i + 1 == row.size();
      if (i >= kFirstNumber && !is_last)
        line += blanks + row[i] + "  ";
      else
        line += row[i] + (is_last ? "" : blanks + "  ");
    }
    print_text("%s\n", line.c_str());
  }
}

nlohmann::json json_of(const ListedRun& run,
                       const std::vector<std::pair<std::string, std::string>>& values) {
  nlohmann::json out = {{"run_dir", run.path},
                        {"state", run.state},
                        {"job", run.job.job()},
                        {"model", run.job.model().name()},
                        {"step", run.step}};
  const auto say = [&](const char* key, const std::optional<double>& value) {
    if (value) out[key] = *value;
  };
  say("eval_accuracy", run.eval_accuracy);
  say("eval_loss", run.eval_loss);
  if (is_of_tokens(run.job) && run.eval_loss) out["eval_perplexity"] = std::exp(*run.eval_loss);
  say("samples_per_second", run.samples_per_second);
  say("wall_seconds", run.wall_seconds);
  out["differs"] = nlohmann::json::object();
  for (const auto& [key, value] : values) out["differs"][key] = value;
  return out;
}

Status show_runs(const RunsArguments& arguments) {
  std::vector<ListedRun> runs;
  std::vector<std::string> directories = arguments.directories;
  if (directories.empty()) directories.emplace_back("runs");
  for (const std::string& directory : directories) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ListedRun> more, list_runs(directory));
    std::move(more.begin(), more.end(), std::back_inserter(runs));
  }
  std::vector<wire::JobSpec> jobs;
  for (const ListedRun& run : runs) jobs.push_back(run.job);
  const auto differs = differences(jobs);
  nlohmann::json list = nlohmann::json::array();
  std::vector<TableRow> rows = {
      {"run", "state", "model", "step", "test loss", "test", "samples/s", "time", "differs in"}};
  for (size_t i = 0; i < runs.size(); ++i) {
    list.push_back(json_of(runs[i], differs[i]));
    rows.push_back(row_of(runs[i], differs[i]));
    for (std::string& cell : rows.back()) cell = printable(cell, std::string::npos);
  }
  if (arguments.json)
    std::fputs(json_text(list).c_str(), stdout);
  else if (runs.empty())
    print_text("no run is in %s\n", directories[0].c_str());
  else
    print_table(rows);
  return Status::ok();
}

}  // namespace

void add_runs_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("runs", "List runs with their figures, to compare them");
  const auto arguments = std::make_shared<RunsArguments>();
  command->add_option("directory", arguments->directories,
                      "Directories that hold run directories, or run directories; default: runs");
  command->add_flag("--json", arguments->json, "Print the list as JSON");
  command->footer(
      "The newest run comes first. \"test\" is the accuracy, or the perplexity of a model of "
      "tokens.\n"
      "The last column has the keys in which the jobs differ. 'lockstep report' draws the curves "
      "of\n"
      "several runs into one page.\n"
      "Examples:\n"
      "  lockstep runs\n"
      "  lockstep runs /shared/runs\n"
      "  lockstep runs runs/first runs/second\n"
      "  lockstep runs --json | jq '.[] | select(.state == \"done\")'\n"
      "\n"
      "Exit codes: 0 listed, 66 no such directory.");
  commands[command] = [arguments] { return report(show_runs(*arguments)); };
}

}  // namespace lockstep
