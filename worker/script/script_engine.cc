#include "worker/script/script_engine.h"

#include <algorithm>
#include <utility>

#include "comm/base/work_in_hand.h"
#include "worker/engine/step_memory.h"
#include "worker/optim/grad_norm.h"
#include "worker/script/script_state.h"

namespace lockstep {
namespace {

Status not_with_a_script(const std::string& what) {
  return {Code::kInternal, what + ": not in a run of a script"};
}

ls_order order_of(ls_order_kind kind) {
  ls_order order{};
  order.kind = kind;
  return order;
}

}  // namespace

Result<std::unique_ptr<ScriptEngine>> ScriptEngine::create(Parts parts,
                                                           const BufferFactory& make_buffer) {
  keep_freed_memory();  // of torch's tensors: they come from the same allocator
  const uint32_t regions = regions_needed(parts.shape.slots, parts.shape.slots);
  LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, make_buffer(parts.layout.flat().buffer, regions));
  std::unique_ptr<ScriptDevice> device;
  if (parts.module != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(device, ScriptDevice::create(*parts.module, parts.layout.flat(),
                                                           parts.job.comm().numerics() == "fast",
                                                           parts.job.train().check_every() > 0));
  }
  return std::unique_ptr<ScriptEngine>(
      new ScriptEngine(std::move(parts), std::move(buffer), std::move(device)));
}

ScriptEngine::ScriptEngine(Parts parts, std::unique_ptr<GradientBuffer> buffer,
                           std::unique_ptr<ScriptDevice> device)
    : parts_(std::move(parts)),
      buffer_(std::move(buffer)),
      device_(std::move(device)),
      lrs_(parts_.lrs),
      driver_(parts_.job, parts_.shape, parts_.layout.flat(), parts_.layout.loss(), *this) {}

Result<ls_reply> ScriptEngine::ask(const ls_order& order) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, parts_.desk.ask(order));
  LOCKSTEP_RETURN_IF_ERROR(status_of(reply));
  return reply;
}

Result<std::vector<StateTensor>> ScriptEngine::state() {
  ls_order order = order_of(LS_STATE);
  order.generation = driver_.view().generation;
  order.step = applied_;
  order.is_writer = driver_.view().is_writer;
  LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
  return state_of(reply);
}

Status ScriptEngine::install_state(std::span<const StateTensor> state, Step applied_steps) {
  const std::vector<ls_tensor> tensors = tensors_of(state);
  ls_order order = order_of(LS_INSTALL);
  order.step = applied_steps;
  order.tensors = tensors.data();
  order.tensor_count = tensors.size();
  has_changed_ = true;  // also where it fails half-way
  LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
  take_lrs(reply);
  applied_ = applied_steps;
  driver_.moved_to(applied_steps);
  return Status::ok();
}

// The script's own model is trained by now; only a new process can build it again.
Status ScriptEngine::start_afresh() {
  if (!has_changed_) return Status::ok();
  return {Code::kInternal,
          "the run begins again from its first step, and this process has trained already; "
          "a new one takes its place"};
}

Result<uint64_t> ScriptEngine::largest_slot(MemoryMeter&, uint32_t) {
  return not_with_a_script("train.global_batch auto");
}

Status ScriptEngine::set_global_batch(uint64_t) {
  return not_with_a_script("train.global_batch auto");
}

Result<GradientBuffer*> ScriptEngine::device_buffer() {
  if (device_ == nullptr) return static_cast<GradientBuffer*>(nullptr);
  return device_->buffer(buffer_->regions());
}

void ScriptEngine::drop_device_buffer() {
  if (device_ != nullptr) device_->drop_buffer();
}

// Known once the devices were opened. Members with other versions cannot connect.
std::vector<std::string> ScriptEngine::fingerprint() const {
  std::vector<std::string> lines = parts_.fingerprint;
  if (parts_.module != nullptr && !parts_.module->comm_library().empty())
    lines.push_back("nccl=" + parts_.module->comm_library());
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The rate of the step before an installed state is unknown: the report has the next one's.
Result<wire::EvalReport> ScriptEngine::evaluate() {
  if (parts_.evals.empty() || !ahead_)
    return Status(Code::kInternal, "evaluate() without evaluation data or a generation");
  driver_.enters(Phase::kEval);
  const PhaseClock::Scope scope(phases(), WorkPhase::kEval);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::EvalReport report,
                            evaluate_script(parts_.evals, parts_.job, driver_.view(), applied_,
                                            [this](const ls_order& order) { return ask(order); }));
  if (applied_ > 0) report.set_epoch(plan_step(parts_.shape, applied_ - 1).epoch);
  report.set_lr(lr(applied_));
  evaluated_ = lockstep::mark_of(report);
  return report;
}

Result<bool> ScriptEngine::cross_edge(bool is_last) {
  if (applied_ == 0) return Status(Code::kInternal, "no epoch has ended before the first step");
  driver_.enters(Phase::kEdge);
  const PhaseClock::Scope scope(phases(), WorkPhase::kOptimizer);
  ls_order order = order_of(LS_EDGE);
  order.step = applied_;
  order.generation = driver_.view().generation;
  order.is_writer = driver_.view().is_writer;
  order.is_done = is_last;
  // An apply of this step draws from the slot before.
  order.task.seed = slot_seed(parts_.job.seed(), applied_, parts_.shape.slots + 1);
  order.task.epoch = plan_step(parts_.shape, applied_ - 1).epoch;
  order.evaluated = {evaluated_.step, evaluated_.loss, evaluated_.correct, evaluated_.samples};
  has_changed_ = true;
  LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
  take_lrs(reply);
  return reply.ends_run != 0;
}

Status ScriptEngine::begin_generation(const GenerationView& view, StepGate gate) {
  end_generation();
  if (view.phases != nullptr) phases_ = view.phases;
  evaluated_ = view.evaluated;
  if (view.in_hand != nullptr) view.in_hand->has_computed();  // left by an aborted step
  view.collective->sum_into(parts_.layout.room());
  GenerationView with_phases = view;
  with_phases.phases = phases_;
  GradientPath path;
  if (device_ != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(path, device_->path(view, buffer_->regions()));
  }
  device_counts_.store(path.sums != nullptr && view.devices != nullptr, std::memory_order_release);
  LOCKSTEP_RETURN_IF_ERROR(
      driver_.begin_generation(std::move(with_phases), std::move(gate), *buffer_, path));
  if (parts_.data != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(parts_.data->begin_generation(driver_.view(), applied_));
  ahead_.emplace(BatchSequenceOptions{.shape = parts_.shape,
                                      .order = parts_.order,
                                      .first_step = applied_,
                                      .end_step = view.total_steps,
                                      .slots = view.slot_runs[view.collective->rank()],
                                      .skips = view.skips,
                                      .first_slot = std::nullopt});
  return Status::ok();
}

void ScriptEngine::end_generation() {
  driver_.end_generation();
  if (parts_.data != nullptr) parts_.data->end_generation();
  ahead_.reset();
  phases_ = &own_phases_;
}

Result<StepOutcome> ScriptEngine::step() {
  if (!ahead_) return Status(Code::kInternal, "step() before begin_generation()");
  driver_.enters(Phase::kTrain);
  Result<StepOutcome> outcome = driver_.step();
  // A slot that was cut short left the loader ahead of the state.
  if (!outcome.is_ok() && parts_.data != nullptr) parts_.data->end_generation();
  return outcome;
}

Progress ScriptEngine::progress() const {
  Progress progress = driver_.progress();
  progress.is_paused = parts_.desk.is_paused();
  if (progress.phase == Phase::kTrain && device_counts_.load(std::memory_order_acquire))
    progress.bucket = std::min(progress.enqueued, device_->finished_buckets());
  return progress;
}

double ScriptEngine::lr(Step step) const {
  return lrs_[step % parts_.shape.turns];
}

void ScriptEngine::take_lrs(const ls_reply& reply) {
  lrs_.assign(reply.lrs, reply.lrs + parts_.shape.turns);
}

uint64_t ScriptEngine::step_labels(const StepPlan&, Step, uint64_t samples) {
  return samples;
}

Status ScriptEngine::ask_for_slot(const SlotTask& task, SlotPort* port, float* region,
                                  bool is_again) {
  phases().switch_to(WorkPhase::kDataWait);
  ScriptData::BatchRef batch;
  if (ScriptData* const data = parts_.data; data != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        batch, is_again ? data->load(task.step, task.slot) : data->next(task.step, task.slot));
  }
  SlotInWork& work = work_.emplace();
  work.port = port;
  work.region = region;
  work.batch = std::move(batch);
  work.may_add = port != nullptr && !task.wants_hash && !parts_.layout.has_late();
  work.task = task_of(parts_.shape, parts_.job.seed(), task.step, task.slot, task.step_labels);
  work.takes.resize(flat().parameters.size());
  work.has_statistic.resize(flat().statistics.size());
  ls_order order = order_of(LS_SLOT);
  order.task = work.task;
  order.generation = driver_.view().generation;
  order.is_again = is_again;
  const Result<ls_reply> reply = ask_with_slot_in_hand(order);
  Status status = reply.status();
  if (status.is_ok()) status = work.closed.is_ok() ? finish_region(*reply) : work.closed;
  last_place_ = work.place;
  work_.reset();
  phases().switch_to(WorkPhase::kOther);
  return status;
}

// Until Python has the samples it reads them, in data processes of its own; the job's data are read
// by a loader, which marks them itself.
Result<ls_reply> ScriptEngine::ask_with_slot_in_hand(const ls_order& order) {
  WorkInHand* const in_hand = parts_.data == nullptr ? driver_.view().in_hand : nullptr;
  if (in_hand != nullptr) in_hand->reads(order.task.step, order.task.slot);
  Result<ls_reply> reply = ask(order);
  if (in_hand != nullptr) in_hand->has_read();
  return reply;
}

Result<std::optional<uint64_t>> ScriptEngine::compute(const SlotTask& task, SlotPort& port) {
  LOCKSTEP_RETURN_IF_ERROR(ask_for_slot(task, &port, nullptr, /*is_again=*/false));
  if (!task.wants_hash) return std::optional<uint64_t>();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t hash, hash_of_slot(port.region()));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t again, compute_again(task));
  if (again == hash) return std::optional(hash);
  return Status(Code::kConfig,
                "the script computed slot " + std::to_string(task.slot) + " of step " +
                    std::to_string(task.step) +
                    " twice, and the gradients differ. It may use a random generator of its own, "
                    "or something that it counts or keeps from slot to slot, or compute something "
                    "else where run.is_trial is true, as it is the second time; draw from torch's, "
                    "numpy's or random's default generators, which Lockstep seeds for each slot");
}

Result<uint64_t> ScriptEngine::compute_again(const SlotTask& task) {
  private_region_.assign(flat().buffer.elements, 0);
  LOCKSTEP_RETURN_IF_ERROR(ask_for_slot(task, nullptr, private_region_.data(), /*is_again=*/true));
  return hash_of_slot(private_region_.data());
}

Result<uint64_t> ScriptEngine::hash_of_slot(const float* region) {
  if (device_ == nullptr) return hash_gradients(flat(), region);
  return device_->hash(last_place_);
}

Result<bool> ScriptEngine::are_finite(const StepSums& sums) {
  if (sums.on_device != nullptr) return device_->are_finite(sums.on_device);
  return all_finite(sums.on_host, flat().buffer.statistics);
}

Result<bool> ScriptEngine::apply(const StepSums& sums, uint32_t non_empty_slots, double) {
  const float* control = sums.on_host + flat().buffer.statistics;
  const StepPlan plan = plan_step(parts_.shape, applied_);
  const bool all_end = control[parts_.layout.ends_at()] == static_cast<float>(non_empty_slots);
  ends_here_ = all_end && plan.last_of_batch;
  float factor = 1;
  if (parts_.layout.facts().has_counts) {
    const double counted = parts_.layout.get_count(control);
    if (!(counted > 0)) {  // nothing counts: there is nothing to be the mean of
      LOCKSTEP_RETURN_IF_ERROR(pass_over());
      return false;
    }
    const uint64_t samples =
        driver_.view().skips.counted_samples(plan, applied_, parts_.shape.slots);
    factor = static_cast<float>(static_cast<double>(samples) / counted);
  }
  parts_.layout.take_used(control);
  if (sums.on_device == nullptr) parts_.layout.take_sums(sums.on_host, non_empty_slots, factor);
  ls_order order = order_of(LS_APPLY);
  order.step = applied_;
  order.generation = driver_.view().generation;
  order.is_writer = driver_.view().is_writer;
  order.task.seed = slot_seed(parts_.job.seed(), applied_, parts_.shape.slots);
  order.task.epoch = plan.epoch;
  order.task.turn = plan.turn;
  order.ends_run = all_end;
  order.loss = driver_.mean_loss(control);
  const std::vector<double> metrics(control + kControlMetrics,
                                    control + kControlMetrics + driver_.loss().metrics.size());
  order.metrics = metrics.data();
  order.evaluated = {evaluated_.step, evaluated_.loss, evaluated_.correct, evaluated_.samples};
  order.device_sums = sums.on_device;
  order.factor = factor;
  order.slots = non_empty_slots;
  has_changed_ = true;
  reads_ = sums.on_device == nullptr ? SumsRead::kNone : SumsRead::kDue;
  LOCKSTEP_ASSIGN_OR_RETURN(const ls_reply reply, ask(order));
  if (std::exchange(reads_, SumsRead::kNone) == SumsRead::kDue)
    return Status(Code::kInternal, "the script did not say on which stream it read the sums");
  take_lrs(reply);
  ends_here_ |= reply.ends_run != 0 && plan.last_of_batch;
  ++applied_;
  return reply.skipped == 0;
}

Status ScriptEngine::pass_over() {
  has_changed_ = true;
  ++applied_;
  return Status::ok();
}

Result<uint64_t> ScriptEngine::state_hash() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StateTensor> held, state());
  return hash_of(held);
}

std::vector<ls_task> ScriptEngine::upcoming(uint32_t most) {
  std::vector<ls_task> tasks;
  while (ahead_ && tasks.size() < most) {
    const auto next = ahead_->next();
    if (!next) break;
    tasks.push_back(task_of(parts_.shape, parts_.job.seed(), next->step, next->slot, 0));
  }
  return tasks;
}

}  // namespace lockstep
