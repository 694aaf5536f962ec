#include "deploy/cli/watch/tensorboard_export.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/base/host_name.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kOurs[] = ".lockstep";     // after the host in the names of our files
constexpr uint64_t kFlushSteps = 10'000;  // no more are held in memory

double number_or_nan(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : NAN;
}

json column_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : json::array();
}

double number_at(const json& column, size_t i) {
  return i < column.size() && column[i].is_number() ? column[i].get<double>() : NAN;
}

Status remove_ours(const std::string& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> ours;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("events.out.tfevents.") &&
        name.find(std::string(kOurs) + ".") != std::string::npos)
      ours.push_back(entry.path());
  }
  for (const auto& path : ours) std::filesystem::remove(path, error);
  if (!error) return Status::ok();
  return Status(Code::kInternal, "cannot clear " + directory + ": " + error.message());
}

}  // namespace

Result<TensorboardExport> TensorboardExport::begin(RunSource& source) {
  const std::string directory = source.run_dir() + "/tensorboard";
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status(Code::kInternal, "cannot make " + directory + ": " + error.message());
  LOCKSTEP_RETURN_IF_ERROR(remove_ours(directory));
  TensorboardExport made(source, directory);
  LOCKSTEP_RETURN_IF_ERROR(made.open_file(/*is_again=*/false));
  return made;
}

Status TensorboardExport::open_file(bool is_again) {
  const double now_s = static_cast<double>(SystemClock().wall_ms()) / 1e3;
  const std::string name =
      event_file_name(static_cast<int64_t>(now_s), host_name() + kOurs, ++files_);
  LOCKSTEP_ASSIGN_OR_RETURN(file_, EventFile::create(directory_ + "/" + name, now_s));
  if (is_again) file_->start_session(1, now_s);
  offset_ = 0;
  steps_ = speed_step_ = eval_step_ = 0;
  thin_ = {};
  return file_->flush();
}

double TensorboardExport::wall_of(uint64_t step) const {
  return newest_wall_s_ - (newest_step_ - static_cast<double>(step)) * step_wall_s_;
}

Status TensorboardExport::update() {
  LOCKSTEP_ASSIGN_OR_RETURN(const json status, source_->get_json("status", "members=1"));
  const double step = number_or_nan(status, "step");
  const double wall_s = number_or_nan(status, "wall_seconds");
  newest_step_ = std::isfinite(step) ? step : 0;
  step_wall_s_ = newest_step_ > 0 && std::isfinite(wall_s) ? wall_s / newest_step_ : 0;
  const bool was_live = source_->is_live();
  LOCKSTEP_RETURN_IF_ERROR(add_steps());
  LOCKSTEP_RETURN_IF_ERROR(add_curves());
  LOCKSTEP_RETURN_IF_ERROR(add_evaluations());
  // It ended meanwhile, and after its steps were read it may have gone on, or back.
  if (was_live && !source_->is_live()) return update();
  return file_->flush();
}

// Adds the metrics of a model that has its own.
void TensorboardExport::add_metrics(const json& line, const std::string& prefix, uint64_t step) {
  const auto metrics = line.find("metrics");
  if (metrics == line.end() || !metrics->is_object()) return;
  for (const auto& [name, value] : metrics->items())
    file_->scalar(prefix + name, step, wall_of(step),
                  static_cast<float>(number_or_nan(*metrics, name.c_str())));
}

void TensorboardExport::add_point(const json& line) {
  for (const auto& [key, tag] : {std::pair{"loss", "train/loss"}, std::pair{"lr", "train/lr"}}) {
    const double value = number_or_nan(line, key);
    file_->scalar(tag, steps_, wall_of(steps_), static_cast<float>(value));
  }
  add_metrics(line, "train/", steps_);
}

// Sets *is_cut if the line is not the next step's: lines before it were cut away and written again.
Status TensorboardExport::add_line(const std::string& line, bool* is_cut) {
  const json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto step = parsed.is_object() ? parsed.find("step") : parsed.end();
  *is_cut = !parsed.is_object() || step == parsed.end() || *step != steps_ + 1;
  if (*is_cut) return Status::ok();
  ++steps_;
  offset_ += static_cast<int64_t>(line.size()) + 1;
  add_point(parsed);
  return steps_ % kFlushSteps == 0 ? file_->flush() : Status::ok();
}

Status TensorboardExport::add_steps() {
  const std::string path = rundir::file_in(source_->run_dir(), rundir::kHistory);
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return Status(Code::kNoInput, "there is no " + path + ": " + errno_text(errno));
  newest_wall_s_ =
      static_cast<double>(found.st_mtim.tv_sec) + static_cast<double>(found.st_mtim.tv_nsec) / 1e9;
  if (found.st_size < offset_) LOCKSTEP_RETURN_IF_ERROR(open_file(/*is_again=*/true));
  if (::access(coordinator::thin_path(path).c_str(), R_OK) != 0)  // an older Lockstep's run
    return add_whole_steps(path, ~uint64_t{0});
  LOCKSTEP_RETURN_IF_ERROR(add_whole_steps(path, kWholeSteps));
  if (steps_ >= kWholeSteps) LOCKSTEP_RETURN_IF_ERROR(add_thin_steps(path));
  return source_->is_live() ? Status::ok() : add_whole_steps(path, ~uint64_t{0});
}

// Tells each step up to `last`.
Status TensorboardExport::add_whole_steps(const std::string& path, uint64_t last) {
  std::ifstream history(path, std::ios::binary);
  history.seekg(offset_);
  std::string line;
  // At its end a line is not whole yet.
  while (steps_ < last && std::getline(history, line) && !history.eof()) {
    bool is_cut = false;
    LOCKSTEP_RETURN_IF_ERROR(add_line(line, &is_cut));
    if (!is_cut) continue;
    if (steps_ == 0) return Status(Code::kUsage, path + " does not begin with step 1");
    LOCKSTEP_RETURN_IF_ERROR(open_file(/*is_again=*/true));
    history.seekg(0);
  }
  return Status::ok();
}

// The check of a line covers all lines before it, so a history that was cut and went on shows.
Status TensorboardExport::add_thin_steps(const std::string& history) {
  const std::string path = coordinator::thin_path(history);
  struct stat found {};
  bool is_cut = ::stat(path.c_str(), &found) != 0 || found.st_size < thin_.end;
  std::ifstream thin(path, std::ios::binary);
  thin.seekg(thin_.end);
  std::string line;
  while (!is_cut && std::getline(thin, line) && !thin.eof()) {
    const auto next = coordinator::read_thin_mark(line + "\n", thin_);
    is_cut = !next;
    if (is_cut) break;
    thin_ = *next;
    if (next->lines <= steps_) continue;
    steps_ = next->lines;
    offset_ = next->bytes;
    add_point(json::parse(line, nullptr, /*allow_exceptions=*/false));
    if (steps_ % kFlushSteps == 0) LOCKSTEP_RETURN_IF_ERROR(file_->flush());
  }
  if (!is_cut) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(open_file(/*is_again=*/true));
  return add_whole_steps(history, kWholeSteps);  // the next update() tells the rest
}

Status TensorboardExport::add_evaluations() {
  std::ifstream evals(rundir::file_in(source_->run_dir(), rundir::kEvals), std::ios::binary);
  if (!evals) return add_old_evaluations();
  // Thinned, the newest steps are not told yet.
  const uint64_t known =
      steps_ < kWholeSteps ? steps_ : std::max(steps_, static_cast<uint64_t>(newest_step_));
  std::string line;
  while (std::getline(evals, line) && !evals.eof()) {
    const json parsed = json::parse(line, nullptr, /*allow_exceptions=*/false);
    const double number = number_or_nan(parsed, "step");
    if (!parsed.is_object() || !std::isfinite(number)) continue;
    const auto step = static_cast<uint64_t>(number);
    if (step <= eval_step_ || step > known) continue;
    eval_step_ = step;
    for (const char* name : {"accuracy", "loss", "top5", "perplexity"}) {
      if (!parsed.contains(name)) continue;
      file_->scalar("eval/" + std::string(name), step, wall_of(step),
                    static_cast<float>(number_or_nan(parsed, name)));
    }
    add_metrics(parsed, "eval/", step);
  }
  return Status::ok();
}

// For a run that ended under an older Lockstep, which wrote no evals.jsonl.
Status TensorboardExport::add_old_evaluations() {
  LOCKSTEP_ASSIGN_OR_RETURN(const json curves, source_->get_json("history", "points=2048"));
  const json evals = curves.value("evals", json::object());
  const json steps = column_of(evals, "step");
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto step = static_cast<uint64_t>(number_at(steps, i));
    if (step <= eval_step_ || step > steps_) continue;
    eval_step_ = step;
    for (const char* name : {"accuracy", "loss"})
      file_->scalar("eval/" + std::string(name), step, wall_of(step),
                    static_cast<float>(number_at(column_of(evals, name), i)));
  }
  return Status::ok();
}

Status TensorboardExport::add_curves() {
  LOCKSTEP_ASSIGN_OR_RETURN(const json curves, source_->get_json("history", "points=2048"));
  const json first = column_of(curves, "first");
  const json speed = column_of(curves, "samples_per_second");
  const double width = number_or_nan(curves, "width");
  for (size_t i = 0; i < first.size() && std::isfinite(width); ++i) {
    const auto end = static_cast<uint64_t>(number_at(first, i) + width);
    // The last point is not whole yet, or will be told with the next ones.
    if (end <= speed_step_ || end > steps_ || !std::isfinite(number_at(speed, i))) continue;
    speed_step_ = end;
    file_->scalar("train/samples_per_second", end, wall_of(end),
                  static_cast<float>(number_at(speed, i)));
  }
  return Status::ok();
}

}  // namespace lockstep
