#include "deploy/cli/doctor/diagnose.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "data/base/progress.h"
#include "data/doctor/ladder.h"
#include "data/doctor/model_advice.h"
#include "data/open/job_sample_cut.h"
#include "data/view/run_data.h"
#include "deploy/agent/allocator.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

constexpr size_t kMostWindows = 1'024;     // of figures that a worker process tells
constexpr double kShareOfTrainer = 0.4;    // of the time
constexpr double kShareOfAllocator = 0.1;  // of each that is tried; the rest is for the data

Status cannot_read() {
  return {Code::kInternal,
          "cannot read the figures of lockstep-worker; install lockstep and lockstep-worker of one "
          "version"};
}

// Seconds of a step, by window; nothing for a value that is no such list.
Result<std::vector<double>> seconds_of(const nlohmann::json& times, const char* name) {
  const auto list = times.find(name);
  if (list == times.end() || !list->is_array() || list->size() > kMostWindows) return cannot_read();
  std::vector<double> seconds;
  for (const nlohmann::json& value : *list) {
    if (!value.is_number()) return cannot_read();
    seconds.push_back(value.get<double>());
    if (!std::isfinite(seconds.back()) || seconds.back() <= 0) return cannot_read();
  }
  return seconds;
}

// Samples a second; nothing where no step was measured.
Result<std::optional<doctor::Rate>> rate_of_steps(const nlohmann::json& times) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> steps_s, seconds_of(times, "steps_s"));
  const auto samples = times.find("samples");
  if (samples == times.end() || !samples->is_number_unsigned()) return cannot_read();
  if (steps_s.empty()) return std::optional<doctor::Rate>();
  std::vector<double> rates;
  for (const double step_s : steps_s) {
    rates.push_back(samples->get<double>() / step_s);
    if (!std::isfinite(rates.back()) || rates.back() <= 0) return cannot_read();
  }
  return std::optional(doctor::rate_of(rates));
}

std::string why_none(const nlohmann::json& times) {
  const auto why = times.find("why_none");
  return why != times.end() && why->is_string() ? why->get<std::string>() : "";
}

// On a GPU: what the trainer could do if copies cost nothing.
Status read_resident(const nlohmann::json& times, doctor::Measurements& out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto rate, rate_of_steps(times));
  if (!rate) {
    out.notes.push_back("steps on a batch in GPU memory were not measured: " + why_none(times));
    return Status::ok();
  }
  doctor::Rung& trainer = out.rungs.back();
  trainer.limit = rate->median;
  trainer.bound = "the same with the batch on the GPU";
  out.rungs.push_back({doctor::RungKind::kResident, *rate, 0, ""});
  return Status::ok();
}

// Other work on the machine only makes steps longer: the shortest is nearest to the true time.
double shortest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

// The code that the process chose, with its last words.
Status failure_of(const ProcessEnd& end, const std::string& log, int64_t log_begin) {
  const std::string words = last_words(log, log_begin);
  const std::string message = "the trainer could not be measured: lockstep-worker " + end.text() +
                              (words.empty() ? "" : ": " + words);
  for (const Code code : {Code::kUsage, Code::kBadData, Code::kNoInput, Code::kConfig})
    if (end.exit_code == exit_code(Status(code, ""))) return {code, message};
  return {Code::kInternal, message};
}

// Nothing if the process was still at work when it had to end: its model's steps last that long.
Result<std::optional<ProcessEnd>> run_to_the_end(const ProcessSpec& spec,
                                                 const std::function<bool()>& is_over) {
  constexpr auto kPoll = std::chrono::milliseconds(20);
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  int status = 0;
  bool is_killed = false;
  while (true) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR)
      return Status(Code::kInternal, "cannot wait for lockstep-worker: " + errno_text(errno));
    if (!is_killed && is_over()) {
      ::kill(pid, SIGKILL);
      is_killed = true;
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (is_killed) return std::optional<ProcessEnd>();
  return std::optional(ProcessEnd::from_wait_status(status));
}

// Beyond its share: what starting the process and opening the data again take, and steps that last.
bool is_overdue(const DiagnoseOptions& options, int64_t begin_ns) {
  constexpr double kGrace = 1.25;  // times all the seconds, and
  constexpr double kStartS = 10;   // this
  const double spent_s = static_cast<double>(SystemClock().monotonic_ns() - begin_ns) / 1e9;
  return options.is_cut() || spent_s > kGrace * options.seconds + kStartS;
}

// With the allocator of the job, for a share of the time.
Status measure_trainer(const wire::JobSpec& job, const std::string& cache_dir,
                       const DiagnoseOptions& options, double share, int64_t begin_ns,
                       doctor::Measurements& out) {
  const std::string job_file = options.directory + "/job.pb";
  const std::string figures = options.directory + "/trainer.json";
  const std::string log = options.directory + "/trainer.log";
  LOCKSTEP_RETURN_IF_ERROR(replace_file(job_file, job.SerializeAsString()));
  const int64_t log_begin = end_of_file(log);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string program, worker_program(sibling_program("")));
  ProcessSpec spec;
  spec.argv = {
      program,   "doctor",   "--job", job_file,    "--cache-dir",
      cache_dir, "--output", figures, "--seconds", std::to_string(options.seconds * share)};
  LOCKSTEP_ASSIGN_OR_RETURN(spec.preload, allocator_library(job.cluster().malloc()));
  spec.output_path = log;
  spec.parent_death_signal = SIGKILL;
  const auto is_over = [&] { return is_overdue(options, begin_ns); };
  LOCKSTEP_ASSIGN_OR_RETURN(const auto end, run_to_the_end(spec, is_over));
  if (!end) {
    out.notes.push_back(
        "the trainer was not measured: its first steps were not done when the time "
        "was over");
    return Status::ok();
  }
  if (!end->is_success()) return failure_of(*end, log, log_begin);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string json, read_file(figures, limits::kFrameBytes));
  return read_trainer(json, out);
}

// On a GPU the steps are the GPU's, and allocate next to nothing here.
std::vector<std::string> allocators_to_try(const wire::JobSpec& job) {
  if (job.cluster().device() == "cuda") return {};
  std::vector<std::string> names = installed_allocators();
  std::erase(names, job.cluster().malloc());
  if (!names.empty() && !job.cluster().malloc().empty() && job.cluster().malloc() != "system")
    names.push_back("system");
  return names;
}

// An allocator that cannot be measured gets a note, and the measurement goes on without it.
void try_allocators(const wire::JobSpec& job, const std::vector<std::string>& names,
                    const std::string& cache_dir, const DiagnoseOptions& options, int64_t begin_ns,
                    Diagnosis& found) {
  for (const std::string& name : names) {
    if (is_overdue(options, begin_ns)) return;
    options.progress("training steps with " + name);
    wire::JobSpec other = job;
    other.mutable_cluster()->set_malloc(name);
    doctor::Measurements measured;
    const Status status =
        measure_trainer(other, cache_dir, options, kShareOfAllocator, begin_ns, measured);
    const doctor::Rung* trainer = measured.find(doctor::RungKind::kTrainer);
    for (const std::string& note : measured.notes)
      found.measured.notes.push_back("cluster.malloc=" + name + ": " + note);
    if (status.is_ok() && trainer != nullptr)
      found.allocators.push_back({name, trainer->rate});
    else if (!status.is_ok())
      found.measured.notes.push_back("cluster.malloc=" + name + ": " + status.message());
  }
}

// The finding for a measurement that lacks stages: the others say little without them.
doctor::FaultFinding unfinished(double seconds) {
  doctor::FaultFinding finding;
  finding.reason =
      "the measurement was cut before all stages were measured; what is above holds. "
      "Give it more than --seconds " +
      fixed(seconds, 0);
  return finding;
}

}  // namespace

std::string allocator_advice(const Diagnosis& found) {
  constexpr double kWorth = 1.05;  // times as fast
  const doctor::Rung* trainer = found.measured.find(doctor::RungKind::kTrainer);
  if (trainer == nullptr) return "";
  const AllocatorRate* best = nullptr;
  for (const AllocatorRate& other : found.allocators)
    if (other.rate.low > trainer->rate.high && other.rate.median > kWorth * trainer->rate.median &&
        (best == nullptr || other.rate.median > best->rate.median))
      best = &other;
  if (best == nullptr) return "";
  return "cluster.malloc=" + best->name + " makes steps " +
         fixed(best->rate.median / trainer->rate.median, 2) + " times as fast here" +
         (best->name == "system" ? "" : "; install it on every machine of the run");
}

void note_unrest(doctor::Measurements& measured) {
  constexpr double kUnrest = 2;
  const doctor::Rung* worst = nullptr;
  double most = kUnrest;
  for (const doctor::Rung& rung : measured.rungs) {
    if (rung.rate.low <= 0 || rung.rate.high < most * rung.rate.low) continue;
    most = rung.rate.high / rung.rate.low;
    worst = &rung;
  }
  if (worst == nullptr) return;
  measured.notes.push_back("between windows, rates were up to " + fixed(most, 1) +
                           " times apart (" + rung_title(worst->kind) +
                           "): check whether something else uses this machine or its disks");
}

Status read_trainer(const std::string& json, doctor::Measurements& out) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("once") || !parsed.contains("twice"))
    return cannot_read();
  const nlohmann::json& once = parsed["once"];
  const nlohmann::json& twice = parsed["twice"];
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> shortest_s, seconds_of(once, "shortest_s"));
  if (shortest_s.empty()) return cannot_read();
  out.step_s = shortest(shortest_s);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto trainer, rate_of_steps(once));
  if (!trainer) return cannot_read();
  out.rungs.push_back({doctor::RungKind::kTrainer, *trainer, 0, ""});
  if (const auto found = parsed.find("gpu_capability");
      found != parsed.end() && found->is_number_unsigned())
    out.setting.gpu_capability = found->get<uint32_t>();
  if (parsed.contains("resident")) LOCKSTEP_RETURN_IF_ERROR(read_resident(parsed["resident"], out));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> larger_s, seconds_of(twice, "shortest_s"));
  if (!larger_s.empty()) {
    out.double_step_s = shortest(larger_s);
    return Status::ok();
  }
  out.notes.push_back("a step of twice as many samples was not measured: " + why_none(twice));
  return Status::ok();
}

Result<Diagnosis> diagnose(const wire::JobSpec& job, const DiagnoseOptions& options) {
  if (job.train().global_batch() == 0)
    return Status(
        Code::kUsage,
        "train.global_batch is auto, which a run resolves when it starts; give the doctor a "
        "number, as in train.global_batch=128");
  const std::string cache_dir = data::cache_directory(job.data(), options.directory);
  const data::ProgressFn opening = [&](const std::string& what, uint64_t, uint64_t) {
    options.progress(what);
  };
  Diagnosis found;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto dataset, data::open_train_data(job, cache_dir, opening));
  options.opened();
  const int64_t begin_ns = SystemClock().monotonic_ns();
  found.measured.setting = doctor::setting_of(job, *dataset);
  const auto is_over = [&] { return is_overdue(options, begin_ns); };
  const std::vector<std::string> allocators = allocators_to_try(job);
  const double data_share =
      1 - kShareOfTrainer - kShareOfAllocator * static_cast<double>(allocators.size());
  LOCKSTEP_RETURN_IF_ERROR(doctor::measure_data(
      job, *dataset, {options.seconds * data_share, is_over, options.progress}, found.measured));
  if (!is_over()) {
    options.progress("training steps");
    LOCKSTEP_RETURN_IF_ERROR(
        measure_trainer(job, cache_dir, options, kShareOfTrainer, begin_ns, found.measured));
    try_allocators(job, allocators, cache_dir, options, begin_ns, found);
  }
  note_unrest(found.measured);
  const bool is_whole = found.measured.find(doctor::RungKind::kTrainer) != nullptr &&
                        found.measured.find(doctor::RungKind::kLoader) != nullptr;
  found.finding = is_whole ? doctor::decide(found.measured) : unfinished(options.seconds);
  for (std::string& advice : doctor::model_advice(job, *dataset, found.measured.setting))
    found.finding.advice.push_back(std::move(advice));
  if (std::string advice = allocator_advice(found); !advice.empty())
    found.finding.advice.push_back(std::move(advice));
  return found;
}

}  // namespace lockstep
