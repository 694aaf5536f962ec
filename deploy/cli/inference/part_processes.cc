#include "deploy/cli/inference/part_processes.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/environment/progress_line.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/export/find_checkpoint.h"

namespace lockstep {
namespace {

constexpr uint32_t kMostDeaths = 2;  // of one part
constexpr long kLookNs = 50'000'000;

Code code_of(int exit_code) {
  for (const Code code : {Code::kUsage, Code::kBadData, Code::kNoInput, Code::kConfig})
    if (lockstep::exit_code(Status(code, "")) == exit_code) return code;
  return Code::kInternal;
}

class Running {
 public:
  explicit Running(const PartProcesses& task) : task_(task), deaths_(task.parts, 0) {}
  ~Running() {
    for (const auto& [pid, part] : parts_) ::kill(pid, SIGKILL);
    for (const auto& [pid, part] : parts_) wait_for_end(pid);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Status run() {
    for (uint32_t part = 0; part < task_.parts; ++part) LOCKSTEP_RETURN_IF_ERROR(start(part));
    while (!parts_.empty()) {
      const Reaped reaped = reap_one();
      if (reaped.pid != 0 && parts_.count(reaped.pid) > 0) LOCKSTEP_RETURN_IF_ERROR(ended(reaped));
      if (reaped.pid != 0) continue;
      show_progress();
      const timespec pause{0, kLookNs};
      ::nanosleep(&pause, nullptr);
    }
    return Status::ok();
  }

 private:
  std::string log_of(uint32_t part) const { return task_.file(part) + ".log"; }
  std::string progress_of(uint32_t part) const { return task_.file(part) + ".progress"; }

  Status start(uint32_t part) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string program, worker_program(sibling_program("")));
    ProcessSpec spec;
    spec.argv = {std::move(program)};
    spec.argv.insert(spec.argv.end(), task_.words.begin(), task_.words.end());
    spec.argv.insert(spec.argv.end(),
                     {"--part", std::to_string(part), "--parts", std::to_string(task_.parts),
                      "--out", task_.file(part), "--progress", progress_of(part)});
    spec.output_path = log_of(part);
    spec.parent_death_signal = SIGKILL;
    LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
    parts_[pid] = part;
    return Status::ok();
  }

  Status ended(const Reaped& reaped) {
    const uint32_t part = parts_[reaped.pid];
    parts_.erase(reaped.pid);
    if (reaped.end.is_success()) return Status::ok();
    if (!reaped.end.is_death()) return {code_of(reaped.end.exit_code), said_by(part)};
    if (++deaths_[part] < kMostDeaths) return start(part);
    return {Code::kInternal, "the process of part " + std::to_string(part + 1) + " of " +
                                 std::to_string(task_.parts) + " " + reaped.end.text() + ", " +
                                 std::to_string(kMostDeaths) +
                                 " times; if memory is short, give fewer --workers or a smaller "
                                 "--batch"};
  }

  std::string said_by(uint32_t part) const { return last_line(last_words(log_of(part))); }

  void show_progress() {
    unsigned long long done = 0;
    unsigned long long total = 0;
    for (uint32_t part = 0; part < task_.parts; ++part) {
      const auto text = read_file(progress_of(part), limits::kJobFileBytes);
      unsigned long long of_part = 0;
      if (text.is_ok() && std::sscanf(text->c_str(), "%llu %llu", &of_part, &total) == 2)
        done += of_part;
    }
    if (total > 0) progress_.show(task_.what, done, total);
  }

  const PartProcesses& task_;
  std::map<pid_t, uint32_t> parts_;
  std::vector<uint32_t> deaths_;
  ProgressLine progress_;
};

}  // namespace

Status run_parts(const PartProcesses& task) {
  return Running(task).run();
}

Status run_parts_with(const TrainedPlace& place, PartProcesses task) {
  const std::vector<std::string> words = task.words;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto model, worker_options(place));
    const bool or_newer = model.back() == "--or-newer";
    if (or_newer) model.pop_back();
    task.words = words;
    task.words.insert(task.words.end(), model.begin(), model.end());
    const Status done = run_parts(task);
    std::error_code error;
    if (done.is_ok() || std::filesystem::exists(model.back(), error)) return done;
    if (!or_newer) return why_unusable(done, model.back());
  }
}

}  // namespace lockstep
