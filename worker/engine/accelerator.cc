#include "worker/engine/accelerator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "worker/engine/device_memory.h"

namespace lockstep {
namespace {

// Marks; the rest are for tickets.
enum Mark : uint32_t {
  kInputs = 0,  // DeviceInputs::kMarks of them
  kLossThere = DeviceInputs::kMarks,
  kBackwardReached,
  kFinished,
  kFirstTicket,
};

uint32_t mark_of(uint32_t ticket) {
  return kFirstTicket + ticket % (kDeviceMarks - kFirstTicket);
}

// Logits as (rows, classes). The kernel also writes to what lies beyond the classes of a row: where
// it may not write in place it gets rows that lie densely, and so nothing lies there.
at::Tensor as_rows(const at::Tensor& logits, bool in_place) {
  return (in_place ? logits : logits.contiguous()).reshape({-1, logits.size(-1)});
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
      inputs_(module, where_, kInputs),
      regions_(module, layout.buffer),
      factors_(make_device_factors(job.optimizer())),
      loss_scale_rule_(loss_scale_rule(job.train())) {}

Accelerator::~Accelerator() {
  for (const DeviceLane lane : {DeviceLane::kInputs, DeviceLane::kGradients, DeviceLane::kCompute})
    (void)finish(lane);
  for (const float* memory : pinned_) module_.unpin(const_cast<float*>(memory));
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
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &parameters_, layout_.buffer.gradients));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &statistics_, layout_.statistics_elements()));
  for (size_t i = 0; i < state_.memory().optimizer.size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(
        allocate(module_, &optimizer_.emplace_back(), layout_.buffer.gradients));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &slot_statistics_, layout_.statistics_elements()));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &control_, kCutElements));
  LOCKSTEP_RETURN_IF_ERROR(regions_.reserve(1));
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

void Accelerator::pin(const float* memory) {
  if (pinned_.insert(memory).second)
    module_.pin(const_cast<float*>(memory), layout_.buffer.elements * sizeof(float));
}

Status Accelerator::reset_statistics() {
  return module_.copy(DeviceLane::kCompute, slot_statistics_, statistics_,
                      layout_.statistics_elements() * sizeof(float));
}

Status Accelerator::take_statistics(float* gradients) {
  return module_.copy(DeviceLane::kCompute, gradients + layout_.buffer.gradients, slot_statistics_,
                      layout_.statistics_elements() * sizeof(float));
}

Result<DeviceSums*> Accelerator::sums(uint32_t regions) {
  LOCKSTEP_RETURN_IF_ERROR(regions_.reserve(regions));
  return static_cast<DeviceSums*>(this);
}

Result<GradientBuffer*> Accelerator::regions(uint32_t regions) {
  LOCKSTEP_RETURN_IF_ERROR(regions_.reserve(regions));
  LOCKSTEP_RETURN_IF_ERROR(regions_.reserve_result());
  return static_cast<GradientBuffer*>(&regions_);
}

Status Accelerator::merge(const RegionMerge& merge, const ElementRange& range) {
  return module_.add(regions_.partial(merge.dst) + range.begin,
                     regions_.partial(merge.src) + range.begin, range.size());
}

Status Accelerator::reserve_rows(size_t rows) {
  rows_ = rows;
  if (rows <= rows_reserved_) return Status::ok();
  rows_reserved_ = std::max(rows, 2 * rows_reserved_);
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &rows_device_.losses, rows_reserved_));
  LOCKSTEP_RETURN_IF_ERROR(allocate(module_, &rows_device_.right, rows_reserved_));
  LOCKSTEP_RETURN_IF_ERROR(allocate_host(module_, &rows_host_.losses, rows_reserved_));
  return allocate_host(module_, &rows_host_.right, rows_reserved_);
}

// `in` and `out`: (rows, classes), with the same strides.
template <typename T>
CrossEntropy<T> Accelerator::cross_entropy_of(const at::Tensor& in, const at::Tensor& out,
                                              uint64_t step_labels) const {
  return {.logits = static_cast<const T*>(in.const_data_ptr()),
          .gradient = static_cast<T*>(out.mutable_data_ptr()),
          .labels = inputs_.labels(),
          .width = {static_cast<uint32_t>(in.size(1)), static_cast<uint32_t>(in.stride(0))},
          .scale = 1.0f / static_cast<float>(step_labels),
          .losses = rows_device_.losses,
          .right = rows_device_.right};
}

Status Accelerator::start_loss(const at::Tensor& logits, bool in_place, uint64_t step_labels,
                               at::Tensor* gradient) {
  const at::Tensor in = as_rows(logits.detach(), in_place);
  const at::Tensor out = in_place ? in : at::empty(in.sizes(), in.options());
  LOCKSTEP_RETURN_IF_ERROR(reserve_rows(static_cast<size_t>(in.size(0))));
  const LayerKernels kernels = module_.layers();
  const auto rows = static_cast<uint32_t>(rows_);
  LOCKSTEP_RETURN_IF_ERROR(
      in.scalar_type() == at::kBFloat16
          ? kernels.of_bf16->cross_entropy(cross_entropy_of<cuda::Bf16>(in, out, step_labels), rows)
          : kernels.of_floats->cross_entropy(cross_entropy_of<float>(in, out, step_labels), rows));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kCompute, rows_host_.losses,
                                        rows_device_.losses, rows_ * sizeof(float)));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kCompute, rows_host_.right, rows_device_.right,
                                        rows_ * sizeof(uint32_t)));
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kLossThere, DeviceLane::kCompute));
  if (gradient != nullptr) *gradient = out.view(logits.sizes());
  return Status::ok();
}

Result<SlotLoss> Accelerator::loss() {
  LOCKSTEP_RETURN_IF_ERROR(module_.wait(kLossThere));
  SlotLoss loss;
  for (size_t row = 0; row < rows_; ++row) {
    loss.sum += static_cast<double>(rows_host_.losses[row]);
    loss.correct += rows_host_.right[row];
  }
  return loss;
}

void Accelerator::start(float* region, const ElementRange& range, uint32_t ticket) {
  pin(region);
  const Status status = try_start(region, range, mark_of(ticket));
  std::lock_guard lock(error_mutex_);
  if (transfer_error_.is_ok()) transfer_error_ = status;
}

Status Accelerator::try_start(float* region, const ElementRange& range, uint32_t mark) {
  LOCKSTEP_RETURN_IF_ERROR(module_.mark(kBackwardReached, DeviceLane::kCompute));
  LOCKSTEP_RETURN_IF_ERROR(module_.hold(DeviceLane::kGradients, kBackwardReached));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(DeviceLane::kGradients, region + range.begin,
                                        regions_.partial(0) + range.begin,
                                        range.size() * sizeof(float)));
  return module_.mark(mark, DeviceLane::kGradients);
}

Status Accelerator::wait(uint32_t ticket) {
  {
    std::lock_guard lock(error_mutex_);
    LOCKSTEP_RETURN_IF_ERROR(transfer_error_);
  }
  return module_.wait(mark_of(ticket));
}

Result<const float*> Accelerator::gradients_on_host(const float* gradients,
                                                    std::vector<float>* copy) {
  copy->resize(layout_.buffer.gradients);
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(DeviceLane::kCompute, copy->data(), gradients, copy->size() * sizeof(float)));
  LOCKSTEP_RETURN_IF_ERROR(finish(DeviceLane::kCompute));
  return static_cast<const float*>(copy->data());
}

Result<const float*> Accelerator::bring_sums(const StepSums& sums) {
  constexpr DeviceLane kLane = DeviceLane::kCompute;
  const uint64_t control = layout_.buffer.statistics;
  pin(sums.on_host);
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLane, control_, sums.on_host + control, kCutElements * sizeof(float)));
  if (sums.on_device != nullptr) return sums.on_device;
  LOCKSTEP_RETURN_IF_ERROR(
      module_.copy(kLane, regions_.partial(0), sums.on_host, control * sizeof(float)));
  return static_cast<const float*>(regions_.partial(0));
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

Result<bool> Accelerator::apply(const StepSums& step_sums, uint32_t non_empty_slots, double lr) {
  LOCKSTEP_ASSIGN_OR_RETURN(const float* sums, bring_sums(step_sums));
  const Step step = state_.applied_steps();
  const LossScaleState& scale = state_.loss_scaler().state();
  *apply_host_ = {.gate = step,
                  .loss_scale = {scale.scale, scale.good_steps, scale.skipped_steps},
                  .verdict = {}};
  const cuda::StepRule rule{step, state_.plan().clip_norm, loss_scale_rule_};
  const cuda::Verdict* verdict = &apply_->verdict;
  const float* statistics = sums + layout_.buffer.gradients;
  cuda::UpdateBuffers buffers{.params = parameters_, .state = {}, .grads = sums};
  std::copy(optimizer_.begin(), optimizer_.end(), buffers.state);

  constexpr DeviceLane kLane = DeviceLane::kCompute;
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(kLane, apply_, apply_host_, sizeof *apply_));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.block_totals({sums, blocks_, totals_, /*first=*/0, block_count_}));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.decide(apply_, rule, totals_, block_count_, control_ + kControlLoss));
  LOCKSTEP_RETURN_IF_ERROR(
      module_.update(verdict, chunks_, chunk_count_, buffers,
                     factors_(state_.next_update(lr, /*grad_scale=*/1), state_.plan().groups)));
  LOCKSTEP_RETURN_IF_ERROR(module_.statistics(verdict, statistics, layout_.statistics_elements(),
                                              non_empty_slots, statistics_));
  LOCKSTEP_RETURN_IF_ERROR(module_.copy(kLane, apply_host_, apply_, sizeof *apply_));
  LOCKSTEP_RETURN_IF_ERROR(finish(kLane));
  host_is_behind_ = true;
  if (apply_host_->verdict.passed == 0)
    return Status(Code::kInternal, "the device let step " + std::to_string(step) +
                                       " not through, which is the next one");
  const bool applies = apply_host_->verdict.applies != 0;
  state_.applied_elsewhere(applies, apply_host_->loss_scale);
  return applies;
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
  const auto copy = [&](float* on_device, float* on_host, size_t elements) {
    return module_.copy(DeviceLane::kCompute, to_device ? on_device : on_host,
                        to_device ? on_host : on_device, elements * sizeof(float));
  };
  LOCKSTEP_RETURN_IF_ERROR(copy(parameters_, host.parameters, layout_.buffer.gradients));
  LOCKSTEP_RETURN_IF_ERROR(copy(statistics_, host.statistics, layout_.statistics_elements()));
  for (size_t i = 0; i < optimizer_.size(); ++i)
    LOCKSTEP_RETURN_IF_ERROR(copy(optimizer_[i], host.optimizer[i].data, layout_.buffer.gradients));
  return finish(DeviceLane::kCompute);
}

}  // namespace lockstep
