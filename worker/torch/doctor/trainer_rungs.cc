#include "worker/torch/doctor/trainer_rungs.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "comm/base/clock.h"
#include "comm/collectives/loopback/loopback.h"
#include "data/doctor/ladder.h"
#include "worker/engine/engine.h"
#include "worker/torch/device/slot_graphs.h"
#include "worker/torch/doctor/cached_batch.h"

namespace lockstep {
namespace {

constexpr uint32_t kWindows = 10;
// Libraries and memory; with a slot a step also the recording of its graph, and a replay.
constexpr uint32_t kStepsToWarmUp = kGraphWarmUps + 2;
constexpr double kShortest = 1e-9;              // seconds
constexpr uint64_t kNoEnd = uint64_t{1} << 40;  // steps

// A worker that is alone, whose data set is one step.
class Trainer {
 public:
  struct Kind {
    uint64_t times = 1;  // the samples of the job's step
    bool is_resident = false;
  };
  static Result<std::unique_ptr<Trainer>> create(const wire::JobSpec& job,
                                                 const data::Dataset& dataset, const Kind& kind,
                                                 DeviceModule* module);
  // A step that failed may have left the collective in use.
  ~Trainer() {
    for (const auto& collective : collectives_) collective->abort();
    if (engine_ != nullptr) engine_->end_generation();
  }

  uint64_t samples() const { return batch_->samples(); }
  // Steps for as long as a window, whose times go to `out`.
  Status run_window(double window_s, StepTimes& out);
  // At least one step; on a CPU no more of them than there is time for.
  Status warm_up(double most_s);
  double last_step_s() const { return last_step_s_; }

 private:
  explicit Trainer(bool is_on_gpu) : is_on_gpu_(is_on_gpu) {}

  const bool is_on_gpu_;
  double last_step_s_ = 0;
  std::unique_ptr<data::Dataset> batch_;
  std::unique_ptr<Engine> engine_;                        // null: it could not be made
  std::vector<std::unique_ptr<Collective>> collectives_;  // one, once there is an engine
};

Result<std::unique_ptr<Trainer>> Trainer::create(const wire::JobSpec& job,
                                                 const data::Dataset& dataset, const Kind& kind,
                                                 DeviceModule* module) {
  const RunShape share = doctor::share_of_worker(job, data::epoch_units(dataset));
  std::unique_ptr<Trainer> trainer(new Trainer(module != nullptr));
  const uint64_t samples = kind.times * share.global_batch;
  LOCKSTEP_ASSIGN_OR_RETURN(trainer->batch_, cache_batch(dataset, job, samples));
  if (trainer->samples() < samples)
    return Status(Code::kUsage, "the data have only " + std::to_string(trainer->samples()) +
                                    " samples, and a step of this size has " +
                                    std::to_string(samples));
  wire::JobSpec own = job;
  own.mutable_train()->set_global_batch(trainer->samples());
  own.mutable_train()->set_slots(share.slots);
  own.mutable_train()->set_check_every(0);
  own.mutable_cluster()->set_workers(1);
  // Images are cut and decoded already, and the loader does the rest.
  own.mutable_data()->clear_transforms();
  const auto make_buffer = [](const BufferLayout& layout, uint32_t regions) {
    return Result<std::unique_ptr<GradientBuffer>>(make_plain_buffer(layout, regions));
  };
  LOCKSTEP_ASSIGN_OR_RETURN(trainer->engine_, Engine::create(own, *trainer->batch_, nullptr,
                                                             share.slots, make_buffer, module));
  LOCKSTEP_RETURN_IF_ERROR(trainer->engine_->start_afresh());
  GradientBuffer& buffer = trainer->engine_->gradient_buffer();
  trainer->collectives_ = make_loopback(1, {&buffer});
  GenerationView view;
  view.generation = 1;
  view.collective = trainer->collectives_.front().get();
  view.slot_runs = {{0, share.slots}};
  view.bucket_bounds = {0, buffer.layout().elements};
  view.total_steps = kNoEnd;
  view.keeps_inputs = kind.is_resident;
  LOCKSTEP_RETURN_IF_ERROR(trainer->engine_->begin_generation(view, {}));
  return trainer;
}

double seconds_now() {
  return static_cast<double>(SystemClock().monotonic_ns()) * 1e-9;
}

Status Trainer::warm_up(double most_s) {
  const double begin_s = seconds_now();
  for (uint32_t i = 0; i < kStepsToWarmUp; ++i) {
    const double step_begin_s = seconds_now();
    LOCKSTEP_RETURN_IF_ERROR(engine_->step().status());
    last_step_s_ = seconds_now() - step_begin_s;
    if (!is_on_gpu_ && seconds_now() - begin_s >= most_s) break;
  }
  return Status::ok();
}

// The CPU time of this process's threads so far, whatever else the machine did meanwhile.
double core_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

Status Trainer::run_window(double window_s, StepTimes& out) {
  const double end_s = seconds_now() + window_s;
  double sum_s = 0;
  double shortest_s = std::numeric_limits<double>::max();
  uint64_t steps = 0;
  while (seconds_now() < end_s || steps == 0) {
    const double begin_s = seconds_now();
    const double core_begin_s = core_seconds();
    LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, engine_->step());
    const double core_s = core_seconds() - core_begin_s;
    const double data_s = outcome.record.times().data_wait_us() * 1e-6;
    const double step_s = std::max(seconds_now() - begin_s - data_s, kShortest);
    sum_s += step_s;
    shortest_s = std::min(shortest_s, is_on_gpu_ ? step_s : std::max(core_s, kShortest));
    ++steps;
  }
  out.steps_s.push_back(sum_s / static_cast<double>(steps));
  out.shortest_s.push_back(shortest_s);
  return Status::ok();
}

// One that has warmed up; null, and `times` says why: there is no memory for it, or no data.
std::unique_ptr<Trainer> create_if_it_can_be(const wire::JobSpec& job, const data::Dataset& dataset,
                                             const Trainer::Kind& kind, DeviceModule* module,
                                             double warm_up_s, StepTimes& times) {
  auto trainer = Trainer::create(job, dataset, kind, module);
  Status ready = trainer.status();
  if (ready.is_ok()) ready = (*trainer)->warm_up(warm_up_s);
  times.why_none = ready.message();
  if (!ready.is_ok()) return nullptr;
  times.samples = (*trainer)->samples();
  return std::move(*trainer);
}

std::unique_ptr<Trainer> create_resident(const wire::JobSpec& job, const data::Dataset& dataset,
                                         DeviceModule* module, double warm_up_s, StepTimes& times) {
  if (module == nullptr) return nullptr;
  if (dataset.shape().is_padded) {
    times.why_none = "padded documents make slots of many lengths, which are sent anew";
    return nullptr;
  }
  return create_if_it_can_be(job, dataset, {.is_resident = true}, module, warm_up_s, times);
}

}  // namespace

Result<TrainerTimes> time_trainer(const wire::JobSpec& job, const data::Dataset& dataset,
                                  double seconds, DeviceModule* module) {
  constexpr double kWarmUpShare = 0.2;  // of the time, for each trainer
  constexpr double kCheapS = 1;         // measured even if no time is left
  constexpr double kLargerSteps = 2;  // that the larger trainer needs at least, of twice the length
  const double end_s = seconds_now() + seconds;
  const double warm_up_s = kWarmUpShare * seconds;
  TrainerTimes times;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto once, Trainer::create(job, dataset, {}, module));
  times.once.samples = once->samples();
  LOCKSTEP_RETURN_IF_ERROR(once->warm_up(warm_up_s));
  // Before the larger one, which needs more memory.
  const auto resident = create_resident(job, dataset, module, warm_up_s, times.resident);
  const double larger_s = kLargerSteps * 2 * once->last_step_s();
  std::unique_ptr<Trainer> twice;
  if (larger_s < kCheapS || seconds_now() + once->last_step_s() + larger_s < end_s)
    twice = create_if_it_can_be(job, dataset, {.times = 2}, module, warm_up_s, times.twice);
  else
    times.twice.why_none = "a step takes so long that --seconds leaves no time for it";
  const double kinds = 1 + (resident != nullptr ? 1 : 0) + (twice != nullptr ? 1 : 0);
  const double window_s = std::max(end_s - seconds_now(), 0.0) / kinds / kWindows;
  for (uint32_t i = 0; i < kWindows && (i == 0 || seconds_now() < end_s); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(once->run_window(window_s, times.once));
    if (twice != nullptr) LOCKSTEP_RETURN_IF_ERROR(twice->run_window(window_s, times.twice));
    if (resident != nullptr)
      LOCKSTEP_RETURN_IF_ERROR(resident->run_window(window_s, times.resident));
  }
  return times;
}

}  // namespace lockstep
