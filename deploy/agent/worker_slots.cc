#include "deploy/agent/worker_slots.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"
#include "deploy/agent/log_bound.h"

namespace lockstep {
namespace {

uint64_t random_id() {
  uint64_t id = 0;
  while (id == 0) std::memcpy(&id, random_bytes(sizeof id).data(), sizeof id);
  return id;
}

}  // namespace

std::vector<uint32_t> WorkerSlots::set_wanted(uint32_t workers) {
  // A worker that was surplus before is on its way out, and does not count as wanted now.
  uint32_t missing = workers > wanted_ ? workers - wanted_ : 0;
  if (workers != wanted_) surplus_deaths_ = 0;
  wanted_ = workers;
  for (Slot& slot : slots_)  // the empty places go first
    if (occupied() > wanted_) slot.is_held = false;
  if (workers == 0) forget_restarts();  // of workers that died before the order came
  std::vector<uint32_t> places;
  for (uint32_t place = 0; missing > 0; ++place) {
    if (place == slots_.size()) {
      const int64_t window_ms = limits::kRestartWindowMs;
      slots_.push_back({.in_hand = std::nullopt,
                        .crashes = {options_.max_crashes, window_ms},
                        .preemptions = {options_.max_preemptions, window_ms}});
    }
    if (slots_[place].pid > 0 || slots_[place].waits || slots_[place].is_held) continue;
    slots_[place].waits = true;
    places.push_back(place);
    --missing;
  }
  return places;
}

Status WorkerSlots::start(uint32_t place, int64_t now_ms) {
  Slot& slot = slots_[place];
  slot.waits = false;
  slot.started_ms = now_ms;
  slot.output_begin = end_of_file(output_path(place));
  slot.process = random_id();
  if (slot.is_unfit) slot.unfit_process = slot.process;
  LOCKSTEP_ASSIGN_OR_RETURN(slot.in_hand, WorkInHand::make());
  std::vector<WorkerOption> told = {
      {"run-dir", options_.run_dir},
      {"local-rank", std::to_string(local_rank(place))},
      {"gpu", std::to_string(gpu(place))},
      {"log-name", name(place)},
      {"workers-here", std::to_string(wanted_ * options_.agents_here)},
      {"node", options_.node},
      {"process", std::to_string(slot.process)},
      {"in-hand-fd", std::to_string(slot.in_hand->descriptor())}};
  if (!slot.gpu_uuid.empty()) told.push_back({"gpu-uuid", slot.gpu_uuid});
  LOCKSTEP_ASSIGN_OR_RETURN(ProcessSpec spec, process_of(options_.worker, told));
  spec.output_path = output_path(place);
  spec.parent_death_signal = SIGKILL;
  spec.kept_descriptor = slot.in_hand->descriptor();
  spec.preload = options_.preload;
  const bool enters_mpi = options_.is_mpi_rank && is_mpi_left_;
  if (enters_mpi) spec.argv.push_back("--mpi");
  LOCKSTEP_ASSIGN_OR_RETURN(slot.pid, start_process(spec));
  if (enters_mpi) is_mpi_left_ = false;
  logger_.info("worker_started", "started worker " + std::to_string(local_rank(place)),
               {{"local_rank", local_rank(place)}, {"pid", slot.pid}});
  return Status::ok();
}

std::optional<WorkerEnd> WorkerSlots::ended(const Reaped& reaped, bool run_is_over,
                                            bool stop_requested, int64_t now_ms) {
  for (uint32_t place = 0; place < slots_.size(); ++place) {
    Slot& slot = slots_[place];
    if (slot.pid != reaped.pid) continue;
    slot.pid = 0;
    if (slot.gpu_uuid.empty()) slot.gpu_uuid = slot.in_hand->gpu();
    const ExitDecision decision = decide(slot, reaped.end, run_is_over, stop_requested, now_ms);
    return WorkerEnd{place,
                     local_rank(place),
                     reaped.pid,
                     slot.process,
                     reaped.end,
                     last_words(output_path(place), slot.output_begin),
                     slot.in_hand->get(),
                     decision};
  }
  return std::nullopt;
}

WorkerEnd WorkerSlots::not_started(uint32_t place, const Status& why, int64_t now_ms) {
  const ProcessEnd end{exit_code(why), 0};
  const ExitDecision decision = decide(slots_[place], end, false, false, now_ms);
  return {place, local_rank(place), 0, slots_[place].process, end, why.message(), {}, decision};
}

ExitDecision WorkerSlots::decide(Slot& slot, const ProcessEnd& end, bool run_is_over,
                                 bool stop_requested, int64_t now_ms) {
  if (!run_is_over && !stop_requested && leaves_for_gpu(slot, end)) {
    if (slot.is_unfit) {
      slot.is_held = true;
      return {ExitAction::kExpected, ExitCause::kNone, 0, "left, because its GPU is not fit"};
    }
    slot.waits = true;
    return {ExitAction::kRestart, ExitCause::kNone, limits::kRestartAfterExitMs,
            "left, because its GPU was not fit; it is fit again"};
  }
  const bool quick = now_ms - slot.started_ms < limits::kQuickDeathMs || still_starts(slot);
  slot.quick_deaths = quick ? slot.quick_deaths + 1 : 0;
  const ExitDecision decision =
      decide_after_exit({.end = end,
                         .run_is_over = run_is_over,
                         .stop_requested = stop_requested,
                         .is_wanted = occupied() < wanted_,
                         .has_lost_other = surplus_deaths_ > 0,
                         .crashes_left = slot.crashes.left(now_ms),
                         .preemptions_left = slot.preemptions.left(now_ms),
                         .quick_deaths = slot.quick_deaths});
  if (decision.action == ExitAction::kReport && occupied() >= wanted_) ++surplus_deaths_;
  if (decision.action != ExitAction::kRestart) return decision;
  if (end.is_success()) --surplus_deaths_;
  slot.waits = true;
  (decision.cause == ExitCause::kPreemption ? slot.preemptions : slot.crashes).spend(now_ms);
  return decision;
}

// Whether the worker left because the coordinator left it out, or turned it away.
bool WorkerSlots::leaves_for_gpu(const Slot& slot, const ProcessEnd& end) const {
  const bool has_left =
      end.signal == 0 && (end.exit_code == 0 || end.exit_code == kCheckpointedExit);
  const bool was_unfit = slot.is_unfit || (slot.process != 0 && slot.unfit_process == slot.process);
  return has_left && was_unfit && occupied() < wanted_;
}

void WorkerSlots::forget_restarts() {
  for (Slot& slot : slots_) slot.waits = slot.is_held = false;
}

uint32_t WorkerSlots::occupied() const {
  return static_cast<uint32_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.pid > 0 || slot.waits || slot.is_held;
  }));
}

bool WorkerSlots::all_ended() const {
  return std::none_of(slots_.begin(), slots_.end(),
                      [](const Slot& slot) { return slot.pid > 0 || slot.waits; });
}

std::vector<WorkerSlots::GpuPlace> WorkerSlots::gpu_places() const {
  std::vector<GpuPlace> places;
  for (uint32_t place = 0; place < slots_.size(); ++place) {
    const Slot& slot = slots_[place];
    if (slot.pid == 0 && !slot.waits && !slot.is_held) continue;
    const std::string told = slot.in_hand ? slot.in_hand->gpu() : "";
    places.push_back({place, local_rank(place), gpu(place),
                      slot.gpu_uuid.empty() ? told : slot.gpu_uuid, slot.pid});
  }
  return places;
}

void WorkerSlots::set_unfit(uint32_t place) {
  Slot& slot = slots_[place];
  slot.is_unfit = true;
  if (slot.pid > 0) slot.unfit_process = slot.process;
}

bool WorkerSlots::hold_if_unfit(uint32_t place) {
  Slot& slot = slots_[place];
  if (!slot.is_unfit) return false;
  slot.waits = false;
  slot.is_held = true;
  return true;
}

bool WorkerSlots::set_fit(uint32_t place) {
  Slot& slot = slots_[place];
  slot.is_unfit = false;
  if (!slot.is_held) return false;
  slot.is_held = false;
  slot.waits = true;
  return true;
}

std::optional<uint32_t> WorkerSlots::release_unfit(uint32_t local_rank) {
  for (uint32_t place = 0; place < slots_.size(); ++place) {
    Slot& slot = slots_[place];
    if (this->local_rank(place) != local_rank || !slot.is_held) continue;
    slot.is_held = false;
    slot.waits = true;
    return place;
  }
  return std::nullopt;
}

std::vector<WorkerSlots::Living> WorkerSlots::living() const {
  std::vector<Living> found;
  for (const Slot& slot : slots_)
    if (slot.pid > 0) found.push_back({slot.pid, slot.process});
  return found;
}

void WorkerSlots::bound_logs() {
  for (uint32_t place = 0; place < slots_.size(); ++place) {
    const auto log = [&](const char* end) {
      return rundir::log_in(options_.run_dir, name(place) + end);
    };
    for (const Result<bool>& bounded : {bound_log(log(".stderr")), bound_log(log(".log.jsonl")),
                                        empty_log(log(".nccl.txt"), limits::kNcclLogBytes)}) {
      const std::string what = bounded.is_ok() ? "" : bounded.status().message();
      if (what.empty() || what == slots_[place].log_trouble) continue;  // each trouble once
      slots_[place].log_trouble = what;
      logger_.warn("log_not_bounded", what);
    }
  }
}

void WorkerSlots::signal_all(int signal) const {
  for (const Living& worker : living()) ::kill(worker.pid, signal);
}

bool WorkerSlots::kill(pid_t pid) const {
  for (const Slot& slot : slots_) {
    if (slot.pid > 0 && slot.pid == pid) return ::kill(pid, SIGKILL) == 0;
  }
  return false;
}

void WorkerSlots::signal_unheard(int64_t ms, int signal) const {
  for (const Slot& slot : slots_)
    if (slot.pid > 0 && (slot.started_ms >= ms || still_starts(slot))) ::kill(slot.pid, signal);
}

bool WorkerSlots::still_starts(const Slot& slot) const {
  return options_.worker.is_script && slot.in_hand && !slot.in_hand->has_registered();
}

uint32_t WorkerSlots::local_rank(uint32_t place) const {
  return options_.first_local_rank + place * options_.agents_here;
}

uint32_t WorkerSlots::gpu(uint32_t place) const {
  if (options_.own_gpus == 0) return local_rank(place);
  // With more workers than GPUs the number says so: modulo is the worker's business.
  if (place >= options_.own_gpus) return place;
  return (options_.first_local_rank + place) % options_.own_gpus;
}

std::string WorkerSlots::name(uint32_t place) const {
  const std::string node = options_.log_node.empty() ? "" : options_.log_node + "-";
  return "worker-" + node + std::to_string(local_rank(place));
}

std::string WorkerSlots::output_path(uint32_t place) const {
  return rundir::log_in(options_.run_dir, name(place) + ".stderr");
}

}  // namespace lockstep
