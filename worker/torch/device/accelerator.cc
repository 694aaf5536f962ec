#include "worker/torch/device/accelerator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "worker/device/device_marks.h"
#include "worker/device/device_memory.h"
#include "worker/device/gradient_hash.h"
#include "worker/device/wide_copy.h"
#include "worker/engine/self_check.h"
#include "worker/torch/device/library_version.h"
#include "worker/torch/device/muon_update.h"
#include "worker/torch/device/sample_losses.h"
#include "worker/torch/model/document_attention.h"

namespace lockstep {
namespace {

// In exact mode NCCL only carries partials, and our kernel adds them (exact_plan.h), so its version
// decides no bit. `nccl` still names it, because members of two versions cannot connect.
// With `auto` such members go on over the host (device_trial.h).
bool needs_one_comm_library(const wire::CommSpec& comm) {
  return comm.backend() != "auto" || comm.numerics() == "fast";
}

}  // namespace

Result<std::unique_ptr<Accelerator>> Accelerator::create(DeviceModule& module,
                                                         const FlatLayout& layout,
                                                         BoundaryState& state,
                                                         const wire::JobSpec& job,
                                                         const data::Dataset& train) {
  std::unique_ptr<Accelerator> device(new Accelerator(module, layout, state, job));
  LOCKSTEP_RETURN_IF_ERROR(device->init(job, train));
  return device;
}

Accelerator::Accelerator(DeviceModule& module, const FlatLayout& layout, BoundaryState& state,
                         const wire::JobSpec& job)
    : module_(module),
      layout_(layout),
      state_(state),
      where_(module.torch_device()),
      optimizer_spec_(job.optimizer()),
      rule_(make_optimizer_rule(optimizer_spec_)),
      loss_scale_rule_(loss_scale_rule(job.train())),
      names_comm_library_(needs_one_comm_library(job.comm())),
      sums_in_windows_(job.comm().numerics() == "fast"),
      is_exact_(job.comm().numerics() != "fast"),
      inputs_(module, where_),
      loss_(module, loss_scale_rule_.is_on),
      gradients_(module, layout),
      reader_(module, layout.parameter_elements * sizeof(float)),
      graphs_(module, layout, inputs_, gradients_, loss_,
              choose_graphs(job, module.torch_queue())) {}

Accelerator::~Accelerator() {
  for (const DeviceLane lane : {DeviceLane::kInputs, DeviceLane::kGradients, DeviceLane::kCompute})
    (void)finish(lane);
}

Status Accelerator::init(const wire::JobSpec& job, const data::Dataset& train) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto transform,
      data::Transform::create({job.data().transforms().begin(), job.data().transforms().end()},
                              train.statistics()));
  LOCKSTEP_RETURN_IF_ERROR(inputs_.set_transform(transform));
  const UpdatePlan& plan = state_.plan();
  const auto chunks = cuda::make_update_chunks(plan.segments);
  const auto blocks = cuda::make_totals_blocks(
      plan.norm_ranges, {layout_.buffer.gradients, layout_.statistics_elements()});
  chunk_count_ = static_cast<uint32_t>(chunks.size());
  block_count_ = static_cast<uint32_t>(blocks.size());
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &parameters_, layout_.parameter_elements));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &statistics_, layout_.statistics_elements()));
  for (size_t i = 0; i < state_.memory().optimizer.size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(
        allocate(module_, &optimizer_.emplace_back(), layout_.buffer.gradients));
  if (state_.memory().average != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &average_, layout_.buffer.gradients));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &slot_statistics_, layout_.statistics_elements()));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &control_, kCutElements));
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve(1));
  LOCKSTEP_RETURN_IF_ERROR(reader_.reserve());
  LOCKSTEP_RETURN_IF_ERROR(upload_table(module_, chunks, &chunks_));
  LOCKSTEP_RETURN_IF_ERROR(upload_table(module_, blocks, &blocks_));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &totals_, blocks.size()));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &apply_, 1));
  LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &apply_host_, 1));
  return finish(DeviceLane::kCompute);  // the tables are on this stack
}

Status Accelerator::finish(DeviceLane lane) {
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kFinished, lane));
  return module_.wait(kFinished);
}

std::vector<std::string> Accelerator::fingerprint() const {
  std::vector<std::string> lines = module_.fingerprint();
  if (where_.is_cuda()) {
    lines.push_back("cublas=" + library_version("cublasLtGetVersion"));
    lines.push_back("cudnn=" + library_version("cudnnGetVersion"));
  }
  if (const std::string version = module_.comm_library(); names_comm_library_ && !version.empty())
    lines.push_back("nccl=" + version);
  return lines;
}

Status Accelerator::make_current() {
  return module_.torch_queue() == nullptr ? Status::ok() : module_.torch_queue()->make_current();
}

const VarlenAttention* Accelerator::varlen_attention() {
  return module_.torch_queue() == nullptr ? nullptr : module_.torch_queue()->varlen_attention();
}

Status Accelerator::send(const data::SampleShape& shape, const void* inputs, const int64_t* labels,
                         uint64_t samples, const SlotValues& values) {
  LOCKSTEP_RETURN_IF_ERROR(gradients_.begin_slot());
  values_ = values;
  most_documents_ =
      varlen_attention() == nullptr ? 0 : lockstep::most_documents(shape, inputs, samples);
  return inputs_.send(shape, inputs, labels, samples, values);
}

Status Accelerator::start_losses(const ModelOutput& output, at::Tensor* gradient) {
  LOCKSTEP_RETURN_IF_ERROR(loss_.start_rows(sample_rows(output), rows_of(output)));
  if (gradient != nullptr) *gradient = losses_gradient(output.losses, values_);
  return Status::ok();
}

// LibTorch's computation of a slot begins here, also after a recording that failed.
Status Accelerator::reset_statistics() {
  refused_before_ = refused_allocations();
  return module_.copy(DeviceLane::kCompute, slot_statistics_, statistics_,
                      layout_.statistics_elements() * sizeof(float));
}

int64_t Accelerator::refused_allocations() const {
  return module_.torch_queue() == nullptr ? 0 : module_.torch_queue()->refused_allocations();
}

// LibTorch's computation of a slot ends here.
Status Accelerator::take_statistics(float* gradients) {
  const int64_t refused = refused_allocations() - refused_before_;
  if (is_exact_ && refused > 0)
    return {Code::kNoMemory,
            "the GPU's memory was too short for " + std::to_string(refused) +
                " request(s) of LibTorch in a slot that went on without: cuDNN takes another "
                "algorithm then, and its bits are not those of other workers; give a slot fewer "
                "samples (train.global_batch, train.slots), or set comm.numerics: fast"};
  return module_.copy(DeviceLane::kCompute, gradients + layout_.buffer.gradients, slot_statistics_,
                      layout_.statistics_elements() * sizeof(float));
}

Result<DeviceSums*> Accelerator::sums(uint32_t regions) {
  LOCKSTEP_RETURN_IF_ERROR(gradients_.counter().reserve());
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve(regions));
  return static_cast<DeviceSums*>(&gradients_);
}

Result<GradientBuffer*> Accelerator::regions(uint32_t regions) {
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve(regions));
  LOCKSTEP_RETURN_IF_ERROR(gradients_.regions().reserve_result(sums_in_windows_));
  return static_cast<GradientBuffer*>(&gradients_.regions());
}

Result<uint64_t> Accelerator::gradient_hash(const float* gradients) {
  return hash_gradients(reader_, layout_, gradients);
}

Result<uint64_t> Accelerator::state_hash() {
  CheckHash hash;
  std::vector<DeviceReader::Range> ranges;
  const auto read = [&] {
    const std::vector<DeviceReader::Range> now = std::exchange(ranges, {});
    return reader_.read(now,
                        [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); });
  };
  for (const StateTensor& tensor : state_.tensors()) {
    if (const void* from = place_of(tensor.data); from != nullptr) {
      ranges.push_back({from, tensor.bytes});
    } else {
      LOCKSTEP_RETURN_IF_ERROR(read());
      hash.update(tensor.data, tensor.bytes);
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(read());
  return hash.value();
}

const void* Accelerator::place_of(const std::byte* on_host) const {
  const BoundaryMemory host = state_.memory();
  const auto found = [on_host](const float* here, const float* there, size_t elements) {
    const auto* begin = reinterpret_cast<const std::byte*>(here);
    const bool is_in = std::less_equal<>()(begin, on_host) &&
                       std::less<>()(on_host, begin + elements * sizeof(float));
    return is_in ? reinterpret_cast<const std::byte*>(there) + (on_host - begin) : nullptr;
  };
  const std::byte* at = found(host.parameters, parameters_, layout_.parameter_elements);
  if (at == nullptr) at = found(host.statistics, statistics_, layout_.statistics_elements());
  for (size_t i = 0; at == nullptr && i < optimizer_.size(); ++i)
    at = found(host.optimizer[i].data, optimizer_[i], layout_.buffer.gradients);
  if (at == nullptr && average_ != nullptr)
    at = found(host.average, average_, layout_.buffer.gradients);
  return at;
}

Result<const float*> Accelerator::bring_sums(const StepSums& sums) {
  constexpr DeviceLane kLane = DeviceLane::kCompute;
  const uint64_t control = layout_.buffer.statistics;
  if (sums.on_device == nullptr) gradients_.pin(sums.on_host);
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLane, control_, sums.on_host + control, kCutElements * sizeof(float)));
  if (sums.on_device != nullptr) return sums.on_device;
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLane, gradients_.partial(0), sums.on_host, control * sizeof(float)));
  return static_cast<const float*>(gradients_.partial(0));
}

Result<bool> Accelerator::are_finite(const StepSums& sums) {
  if (sums.on_device == nullptr) return state_.is_finite(sums.on_host);
  std::vector<cuda::BlockTotals> totals(block_count_);
  LOCKSTEP_RETURN_IF_ERROR(
      module_.block_totals({sums.on_device, blocks_, totals_, /*first=*/0, block_count_}));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(DeviceLane::kCompute, totals.data(), totals_, totals.size() * sizeof totals[0]));
  LOCKSTEP_RETURN_IF_ERROR(finish(DeviceLane::kCompute));
  return std::all_of(totals.begin(), totals.end(),
                     [](const cuda::BlockTotals& block) { return block.is_finite != 0; });
}

static_assert(cuda::kLossAt == kControlLoss && cuda::kWeightAt == kControlWeight);

Result<bool> Accelerator::apply(const StepSums& step_sums, uint32_t non_empty_slots, double lr) {
  LOCKSTEP_ASSIGN_OR_RETURN(const float* sums, bring_sums(step_sums));
  const Step step = state_.applied_steps();
  const LossScaleState& scale = state_.loss_scaler().state();
  *apply_host_ = {.gate = step,
                  .loss_scale = {scale.scale, scale.good_steps, scale.skipped_steps},
                  .verdict = {}};
  const cuda::StepRule rule{step, state_.plan().clip_norm, loss_scale_rule_,
                            state_.plan().has_weights};
  const cuda::StepVerdict* verdict = &apply_->verdict;
  const float* statistics = sums + layout_.buffer.gradients;
  UpdateBuffers buffers{.params = parameters_, .state = {}, .grads = sums};
  std::copy(optimizer_.begin(), optimizer_.end(), buffers.state);

  constexpr DeviceLane kLane = DeviceLane::kCompute;
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(kLane, apply_, apply_host_, sizeof *apply_));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.block_totals({sums, blocks_, totals_, /*first=*/0, block_count_}));
  LOCKSTEP_RETURN_IF_ERROR(module_.decide(apply_, rule, totals_, block_count_, control_));
  const OptimizerStep update = state_.next_update(lr, /*grad_scale=*/1);
  LOCKSTEP_RETURN_IF_ERROR(module_.update(verdict, chunks_, chunk_count_, buffers,
                                          rule_.factors(update, state_.plan().groups),
                                          update.keeps_zeros));
  if (!state_.plan().matrices.empty())
    LOCKSTEP_RETURN_IF_ERROR(update_matrices_if_applied(update, buffers));
  if (average_ != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(module_.average(verdict, parameters_, layout_.buffer.gradients,
                                             state_.average_rate(), average_));
  LOCKSTEP_RETURN_IF_ERROR(module_.statistics(verdict, statistics, layout_.statistics_elements(),
                                              non_empty_slots, statistics_));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(kLane, apply_host_, apply_, sizeof *apply_));
  LOCKSTEP_RETURN_IF_ERROR(finish(kLane));
  host_is_behind_ = true;
  if (apply_host_->verdict.passed == 0)
    return Status(Code::kInternal,
                  "the device rejected step " + std::to_string(step) + ", which is the next step");
  const bool applies = apply_host_->verdict.applies != 0;
  state_.applied_elsewhere(applies, apply_host_->loss_scale);
  return applies;
}

// A chain of LibTorch's operators cannot depend on a verdict that only the device knows.
Status Accelerator::update_matrices_if_applied(OptimizerStep step, const UpdateBuffers& buffers) {
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kCompute, apply_host_, apply_, sizeof *apply_));
  LOCKSTEP_RETURN_IF_ERROR(finish(DeviceLane::kCompute));
  if (apply_host_->verdict.applies == 0) return Status::ok();
  step.grad_scale = apply_host_->verdict.grad_scale;
  update_matrices(optimizer_spec_, where_, state_.plan().matrices, step, state_.plan().groups,
                  {buffers.params, buffers.state[0], buffers.grads});
  return Status::ok();
}

Status Accelerator::to_host() {
  if (!host_is_behind_) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(copy_state(/*to_device=*/false));
  host_is_behind_ = false;
  return Status::ok();
}

Status Accelerator::to_device() {
  LOCKSTEP_RETURN_IF_ERROR(copy_state(/*to_device=*/true));
  host_is_behind_ = false;
  return Status::ok();
}

Status Accelerator::copy_state(bool to_device) {
  const BoundaryMemory host = state_.memory();
  const uint32_t threads = wide_copy_threads();
  const auto copy = [&](float* on_device, float* on_host, size_t elements) {
    const size_t bytes = elements * sizeof(float);
    if (to_device) return module_.copy(DeviceLane::kCompute, on_device, on_host, bytes);
    auto* to = reinterpret_cast<std::byte*>(on_host);
    const DeviceReader::Range range{on_device, bytes};
    return reader_.read({&range, 1}, [&to, threads](const std::byte* piece, size_t size) {
      wide_copy(to, piece, size, threads);
      to += size;
    });
  };
  LOCKSTEP_RETURN_IF_ERROR(copy(parameters_, host.parameters, layout_.parameter_elements));
  LOCKSTEP_RETURN_IF_ERROR(copy(statistics_, host.statistics, layout_.statistics_elements()));
  for (size_t i = 0; i < optimizer_.size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(copy(optimizer_[i], host.optimizer[i].data, layout_.buffer.gradients));
  if (average_ != nullptr)
    LOCKSTEP_RETURN_IF_ERROR(copy(average_, host.average, layout_.buffer.gradients));
  return finish(DeviceLane::kCompute);
}

}  // namespace lockstep
