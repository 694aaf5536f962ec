#include "deploy/cli/commands/run_list.h"

#include <algorithm>
#include <filesystem>

#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/cli/job/job_schema.h"
#include "deploy/cli/keys/job_list.h"
#include "deploy/cli/watch/run_source.h"
#include "deploy/cli/watch/run_status.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path / rundir::kJob, error);
}

int64_t changed_at(const fs::path& path) {
  int64_t newest = 0;
  for (const char* name : {rundir::kJob, rundir::kSummary}) {
    std::error_code error;
    const auto time = fs::last_write_time(path / name, error);
    if (!error) newest = std::max<int64_t>(newest, time.time_since_epoch().count());
  }
  return newest;
}

std::optional<double> number_in(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

std::string state_of_end(int code) {
  if (code == 0) return "done";
  if (code == 75) return "stopped";
  return "failed (" + std::to_string(code) + ")";
}

void fill_from_summary(const nlohmann::json& summary, ListedRun& run) {
  run.state = state_of_end(static_cast<int>(number_in(summary, "exit_code").value_or(0)));
  run.step = static_cast<uint64_t>(number_in(summary, "steps").value_or(0));
  run.eval_accuracy = number_in(summary, "eval_accuracy");
  run.eval_loss = number_in(summary, "eval_loss");
  run.samples_per_second = number_in(summary, "samples_per_second");
  run.wall_seconds = number_in(summary, "wall_seconds");
}

void fill_from_status(const nlohmann::json& status, ListedRun& run) {
  const RunStatus parsed = parse_status(status);
  run.state = parsed.state;
  run.step = parsed.step;
  if (parsed.eval) {
    run.eval_accuracy = parsed.eval->accuracy;
    run.eval_loss = parsed.eval->loss;
  }
  run.samples_per_second = parsed.samples_per_second;
  run.wall_seconds = number_in(status, "wall_seconds");
}

ListedRun look_at(const std::string& path) {
  ListedRun run;
  run.path = path;
  run.changed = changed_at(path);
  const auto job = job_spec_to_show(path);
  if (!job.is_ok()) {
    run.state = job.status().message();
    return run;
  }
  run.job = *job;
  // The summary is there from the end of a run until the run is resumed.
  if (const auto summary = read_summary(path); summary.is_ok()) {
    fill_from_summary(*summary, run);
    return run;
  }
  auto source = RunSource::open(path);
  const auto status = source.is_ok() ? source->get_json("status", "members=1") : source.status();
  if (status.is_ok())
    fill_from_status(*status, run);
  else
    run.state = "not known";
  return run;
}

// A value that comes from the machine, or is only for people, does not tell two results apart.
bool tells_runs_apart(const JobKey& row) {
  if (!list_of(row).empty() || row.key.ends_with("sha256")) return false;
  if (row.key == "train.trace" || row.key == "data.cache_dir") return false;
  for (const char* section : {"model.", "data.", "train.", "optimizer.", "schedule."})
    if (row.key.starts_with(section)) return true;
  return row.key == "seed" || row.key == "comm.numerics" || row.key == "cluster.workers" ||
         row.key == "cluster.device";
}

}  // namespace

Result<std::vector<ListedRun>> list_runs(const std::string& directory) {
  if (is_run(directory)) return std::vector<ListedRun>{look_at(directory)};
  std::error_code error;
  std::vector<ListedRun> runs;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_run(it->path())) runs.push_back(look_at(it->path().string()));
  if (error)
    return Status(Code::kNoInput, directory + ": " + error.message() +
                                      "; name a directory that holds run directories");
  std::sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) {
    return a.changed != b.changed ? a.changed > b.changed : a.path < b.path;
  });
  return runs;
}

std::vector<std::vector<std::pair<std::string, std::string>>> differences(
    const std::vector<wire::JobSpec>& jobs) {
  std::vector<std::vector<std::pair<std::string, std::string>>> out(jobs.size());
  for (const JobKey& row : job_keys()) {
    if (!tells_runs_apart(row)) continue;
    std::vector<std::string> values;
    for (const wire::JobSpec& job : jobs) values.push_back(job_value_text(row, job));
    const bool is_same = std::all_of(values.begin(), values.end(),
                                     [&](const std::string& value) { return value == values[0]; });
    for (size_t i = 0; !is_same && i < jobs.size(); ++i)
      out[i].emplace_back(std::string(row.key), values[i]);
  }
  return out;
}

}  // namespace lockstep
