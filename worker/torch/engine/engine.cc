#include "worker/engine/engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/run/checkpoint/held_state.h"
#include "comm/run/job/gpu_notes.h"
#include "data/loader/job_loader.h"
#include "data/loader/job_order.h"
#include "worker/engine/step_memory.h"
#include "worker/engine/step_reducer.h"
#include "worker/model/weights/initial_weights.h"
#include "worker/torch/device/accelerator.h"
#include "worker/torch/device/cpu_device.h"
#include "worker/torch/engine/engine_impl.h"
#include "worker/torch/engine/muon_parts.h"
#include "worker/torch/engine/numerics_effect.h"
#include "worker/torch/engine/operator_trace.h"
#include "worker/torch/engine/precision.h"

namespace lockstep {
namespace {

// LibTorch throws; we return. `body` gives a Status or a Result.
template <typename Body>
auto without_exceptions(const char* what, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& e) {
    return Status(Code::kInternal, std::string(what) + ": " + e.what_without_backtrace());
  } catch (const std::exception& e) {
    return Status(Code::kInternal, std::string(what) + ": " + e.what());
  }
}

int threads_of(const wire::JobSpec& job) {
  return static_cast<int>(std::max(1u, job.train().threads_per_worker()));
}

// For a CPU; open_gpu() does it for a GPU. Several threads add to one element in any order, as in
// backward of x[i], unless LibTorch is told not to. It then refuses operators with no fixed order.
void set_exact_sums(const wire::JobSpec& job) {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(job.comm().numerics() != "fast" && threads_of(job) > 1,
                                     /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);  // nothing reads unwritten memory
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const wire::JobSpec& job, const data::Dataset& train,
                                               const data::Dataset* eval,
                                               uint32_t max_slots_per_rank,
                                               const BufferFactory& make_buffer,
                                               DeviceModule* module) {
  return without_exceptions("engine", [&]() -> Result<std::unique_ptr<Engine>> {
    if (module == nullptr) set_exact_sums(job);
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                              make_model(job.model(), train.shape(),
                                         outputs_of(job.train(), train.shape(), train.classes())));
    LOCKSTEP_ASSIGN_OR_RETURN(Schedule schedule,
                              Schedule::create(job.schedule(), job.optimizer().lr()));
    LOCKSTEP_ASSIGN_OR_RETURN(ParameterGroups groups,
                              resolve_groups(model->layout(), job.optimizer()));
    auto engine = std::make_unique<EngineImpl>(job, train, eval, std::move(model), schedule,
                                               std::move(groups.frozen));
    LOCKSTEP_RETURN_IF_ERROR(engine->init(max_slots_per_rank, make_buffer, module));
    return std::unique_ptr<Engine>(std::move(engine));
  });
}

EngineImpl::EngineImpl(const wire::JobSpec& job, const data::Dataset& train,
                       const data::Dataset* eval, std::unique_ptr<Model> model, Schedule schedule,
                       std::vector<bool> frozen)
    : job_(job),
      train_(train),
      eval_(eval),
      shape_{data::epoch_units(train), job.train().global_batch(), job.train().slots()},
      model_(std::move(model)),
      schedule_(std::move(schedule)),
      layout_(make_flat_layout(model_->layout(), shape_.slots, std::move(frozen))),
      compute_type_(compute_type(job.train())),
      driver_(job_, shape_, layout_, loss_facts(), *this),
      label_count_(train, data::job_order(job, train)) {}

EngineImpl::~EngineImpl() = default;

LossFacts EngineImpl::loss_facts() const {
  const auto& own = model_->layout().own_loss;
  return {.knows_right = knows_right(loss_kind(job_.train()), own.has_value()),
          .has_weights = model_->layout().has_weights(),
          .metrics = own ? own->metrics : std::vector<std::string>(),
          .labels_per_sample = train_.shape().labels()};
}

Status EngineImpl::init(uint32_t max_slots_per_rank, const BufferFactory& make_buffer,
                        DeviceModule* module) {
  LOCKSTEP_RETURN_IF_ERROR(check_loss());
  LOCKSTEP_RETURN_IF_ERROR(check_precision(job_, module));
  // Finds the errors that the loader would find in the first step, when others have begun.
  const auto& transforms = job_.data().transforms();
  LOCKSTEP_RETURN_IF_ERROR(data::SampleReader::create(
                               train_, {transforms.begin(), transforms.end()}, train_.statistics())
                               .status());
  if (shape_.global_batch != 0) LOCKSTEP_RETURN_IF_ERROR(check_batches());
  LOCKSTEP_RETURN_IF_ERROR(check_eval_batches());
  set_threads();  // also for fingerprint()
  keep_freed_memory();
  LOCKSTEP_ASSIGN_OR_RETURN(MuonParts muon, muon_parts(job_, *model_, layout_, train_));
  LOCKSTEP_ASSIGN_OR_RETURN(
      state_, BoundaryState::create(model_->layout(), layout_, job_, std::move(muon)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      buffer_, make_buffer(layout_.buffer, regions_needed(max_slots_per_rank, shape_.slots)));
  if (module == nullptr) {
    device_ = std::make_unique<CpuDevice>(layout_, *state_);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(device_,
                              Accelerator::create(*module, layout_, *state_, job_, train_));
  }
  const at::Device where = device_->where();
  LOCKSTEP_RETURN_IF_ERROR(model_->move_to(where));
  const auto view = [where](float* data, at::IntArrayRef shape) {
    const at::TensorOptions options(where);
    return at::for_blob(data, shape)
        .options(options.dtype(at::kFloat))
        .target_device(where)
        .make_tensor();
  };
  for (uint32_t i = 0; i < layout_.parameters.size(); ++i) {
    float* data = device_->parameters() + layout_.parameters[i].begin;
    parameters_.push_back(
        view(data, model_->layout().parameters[i].shape).set_requires_grad(layout_.is_trained(i)));
  }
  if (float* const average = device_->average(); average != nullptr) {
    averages_ = parameters_;
    for (uint32_t i = 0; i < layout_.parameters.size(); ++i)
      if (layout_.is_trained(i))
        averages_[i] =
            view(average + layout_.parameters[i].begin, model_->layout().parameters[i].shape);
  }
  for (const FlatTensor& place : layout_.statistics) {
    float* data = device_->slot_statistics() + (place.begin - layout_.buffer.gradients);
    buffers_.push_back(view(data, static_cast<int64_t>(place.elements)));
  }
  gradients_ = std::make_unique<SlotGradients>(layout_, parameters_);
  const auto forward_of = [this](const std::vector<at::Tensor>& parameters) {
    return std::make_unique<SlotForward>(
        *model_, *device_, parameters, buffers_,
        SlotForward::Arithmetic{.compute_type = compute_type_,
                                .trains_in_fp8 = uses_fp8(job_.train()),
                                .is_fast = job_.comm().numerics() == "fast"},
        SlotForward::LossSettings{.kind = loss_kind(job_.train()),
                                  .label_smoothing = job_.train().label_smoothing()},
        *gradients_);
  };
  forward_ = forward_of(parameters_);
  if (!averages_.empty()) average_forward_ = forward_of(averages_);
  tuning_ = data::make_job_tuning(job_, train_);
  if (module == nullptr || job_.comm().numerics() != "fast") {
    LOCKSTEP_ASSIGN_OR_RETURN(results_, same_twice([&] {
                                const bool in_fp8 = uses_fp8(job_.train());
                                return module == nullptr
                                           ? numerics_effect(compute_type_, in_fp8)
                                           : numerics_effect_on(where, compute_type_, in_fp8);
                              }));
  }
  return Status::ok();
}

Status EngineImpl::check_batches() const {
  const uint64_t full = std::min(shape_.global_batch, shape_.samples);
  const uint64_t rest = shape_.samples % full;
  for (const uint64_t samples : {full, rest == 0 ? full : rest}) {
    const StepPlan plan{.samples = samples};
    uint64_t last = 0;
    for (uint32_t slot = 0; slot < shape_.slots; ++slot) {
      const uint64_t size = slot_positions(plan, slot, shape_.slots).size();
      if (size == std::exchange(last, size) || size == 0) continue;
      LOCKSTEP_RETURN_IF_ERROR(check_slot(samples, slot, size));
    }
  }
  return Status::ok();
}

Status EngineImpl::check_slot(uint64_t step_samples, uint32_t slot, uint64_t size) const {
  const std::string step = "a step of " + std::to_string(step_samples) +
                           " samples (train.global_batch " + std::to_string(shape_.global_batch) +
                           " of " + std::to_string(shape_.samples) + " samples) over " +
                           std::to_string(shape_.slots) + " slots";
  // A channel's variance over a single value is no variance, and its gradient is zero or NaN.
  const ModelLayout& model = model_->layout();
  if (model.batch_norm_values == 1 && size == 1)
    return {Code::kConfig,
            model.batch_norm_layer + " cannot normalise over one value: " + step +
                " leaves one sample to slot " + std::to_string(slot) +
                "; change train.global_batch or train.slots so that every slot that is not empty "
                "has two, or set model.batch_norm: false"};
  return model_->check_batch(size, /*training=*/true,
                             "slot " + std::to_string(slot) + " of " + step);
}

Status EngineImpl::check_eval_batches() const {
  if (eval_ == nullptr) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(check_eval_size(eval_->samples(), eval_batch()));
  const uint64_t full = std::min<uint64_t>(eval_batch(), eval_->samples());
  const uint64_t rest = eval_->samples() % full;
  for (const uint64_t samples : {full, rest == 0 ? full : rest}) {
    LOCKSTEP_RETURN_IF_ERROR(model_->check_batch(
        samples, /*training=*/false,
        "an evaluation batch (train.eval_batch " + std::to_string(eval_batch()) + " of " +
            std::to_string(eval_->samples()) + " samples)"));
  }
  return Status::ok();
}

// OpenMP keeps the number per calling thread, so every thread that drives the engine calls this
// first: with another number the bits differ, and no error would show it.
void EngineImpl::set_threads() const {
  const int threads = threads_of(job_);
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  // Can be set once in a process, and is never used by us.
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
}

// Called on the thread that is to compute.
Status EngineImpl::use_this_thread() {
  set_threads();
  return device_->make_current();
}

Result<std::vector<StateTensor>> EngineImpl::state() {
  LOCKSTEP_RETURN_IF_ERROR(device_->to_host());
  return state_->tensors();
}

Status EngineImpl::install_state(std::span<const StateTensor> state, Step applied_steps) {
  LOCKSTEP_RETURN_IF_ERROR(install_tensors(state, state_->tensors()));
  state_is_new_ = true;
  go_to(applied_steps);
  return Status::ok();
}

void EngineImpl::go_to(Step applied_steps) {
  state_->set_applied_steps(applied_steps);
  driver_.moved_to(applied_steps);
}

Status EngineImpl::set_global_batch(uint64_t samples) {
  LOCKSTEP_CHECK(shape_.global_batch == 0 && samples > 0, "the global batch is set once");
  shape_.global_batch = samples;
  return check_batches();
}

Status EngineImpl::start_afresh() {
  state_->initialize(job_.seed());
  if (!job_.model().init().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(initial_weights_,
                              load_initial_weights(job_, model_->layout(), state_->tensors()));
    state_->begin_average();
  }
  state_is_new_ = true;
  go_to(0);
  return Status::ok();
}

bool EngineImpl::is_afresh() const {
  return applied_steps() == 0 && (job_.model().init().empty() || initial_weights_.has_value());
}

std::vector<std::string> EngineImpl::notes() const {
  std::vector<std::string> notes = model_->notes();
  if (uses_fp8(job_.train()) && device_->where().is_cpu())
    notes.push_back("train.precision fp8 on a CPU is for tests: it takes longer than bf16");
  if (!device_->where().is_cuda()) return notes;
  for (std::string& note : gpu_notes(job_)) notes.push_back(std::move(note));
  return notes;
}

void EngineImpl::drop_loader() {
  ahead_ = nullptr;
  loader_.reset();
}

void EngineImpl::end_generation() {
  driver_.end_generation();
  drop_loader();
  phases_ = &own_phases_;
}

Status EngineImpl::begin_generation(const GenerationView& view, StepGate gate) {
  end_generation();
  if (view.phases != nullptr) phases_ = view.phases;
  if (state_is_new_) LOCKSTEP_RETURN_IF_ERROR(device_->to_device());
  state_is_new_ = false;
  device_->keep_inputs(view.keeps_inputs);
  if (view.in_hand != nullptr) view.in_hand->has_computed();  // left by an aborted step
  GradientPath path{.transfer = device_->transfer(), .sums = nullptr, .devices = view.devices};
  if (view.collective->world_size() == 1 || view.devices != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(path.sums, device_->sums(buffer_->regions()));
  }
  device_counts_.store(path.sums != nullptr && view.devices != nullptr, std::memory_order_release);
  GenerationView with_phases = view;
  with_phases.phases = phases_;
  LOCKSTEP_RETURN_IF_ERROR(
      driver_.begin_generation(std::move(with_phases), std::move(gate), *buffer_, path));
  LOCKSTEP_ASSIGN_OR_RETURN(
      loader_, make_loader(shape_, view.slot_runs[view.collective->rank()], state_->applied_steps(),
                           view.total_steps, std::max(1u, job_.data().prefetch_batches()),
                           view.in_hand, tuning_.get()));
  return Status::ok();
}

Result<std::unique_ptr<data::Loader>> EngineImpl::make_loader(const RunShape& shape,
                                                              const SlotRun& slots, Step first,
                                                              Step end, uint32_t prefetch_batches,
                                                              WorkInHand* in_hand,
                                                              data::LoaderTuning* tuning) const {
  data::LoaderOptions options = data::job_loader_options(job_, train_);
  options.shape = shape;
  options.first_step = first;
  options.end_step = end;
  options.slots = slots;
  options.skips = driver_.view().skips;
  options.prefetch_batches = prefetch_batches;
  options.in_hand = in_hand;
  options.prefetch = driver_.view().prefetch;
  options.form = device_->image_form();
  options.keeps_padding = shape_.global_batch == 0;  // of trial steps, which look for the largest
  options.tuning = tuning;
  return data::Loader::start(train_, options);
}

void EngineImpl::note_tuning() {
  if (tuning_is_noted_ || !tuning_ || !tuning_->is_done()) return;
  tuning_is_noted_ = true;
  driver_.view().note(tuning_->result()->text());
}

Result<StepOutcome> EngineImpl::step() {
  if (!loader_) return Status(Code::kInternal, "step() before begin_generation()");
  if (state_->applied_steps() >= driver_.view().total_steps)
    return Status(Code::kInternal, "step() after the last step of the run");
  driver_.enters(Phase::kTrain);
  auto outcome = without_exceptions("step", [this]() -> Result<StepOutcome> {
    LOCKSTEP_RETURN_IF_ERROR(use_this_thread());
    const OperatorTrace trace(driver_.view().trace, state_->applied_steps());
    auto stepped = driver_.step();
    if (stepped.is_ok()) note_tuning();
    return stepped;
  });
  // A slot that was cut short left the loader ahead of the state: nothing more in this generation.
  if (!outcome.is_ok()) drop_loader();
  return outcome;
}

Result<wire::EvalReport> EngineImpl::evaluate() {
  driver_.enters(Phase::kEval);
  return without_exceptions("evaluate", [this]() -> Result<wire::EvalReport> {
    LOCKSTEP_RETURN_IF_ERROR(use_this_thread());
    return run_evaluation();
  });
}

Status EngineImpl::look(const data::Batch& batch, ForwardObserver& observer) {
  return without_exceptions("looking into a slot", [&]() -> Status {
    LOCKSTEP_RETURN_IF_ERROR(use_this_thread());
    const at::NoGradGuard no_grad;
    const ForwardMode::Observer on_layer = [&](uint32_t parameter, const at::Tensor& output) {
      observer.layer(parameter, output);
    };
    const SlotValues values = values_of(batch, /*step_labels=*/0);
    LOCKSTEP_RETURN_IF_ERROR(send_slot(batch, values));
    LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output,
                              forward_->train(values.dropout_key, &on_layer));
    observer.output(output);
    return Status::ok();
  });
}

Progress EngineImpl::progress() const {
  Progress now = driver_.progress();
  if (now.phase == Phase::kTrain && device_counts_.load(std::memory_order_acquire))
    now.bucket = std::min(now.enqueued, device_->finished_buckets());
  return now;
}

}  // namespace lockstep
