// The search for the largest slot: steps that are computed and never applied.
#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "comm/base/limits.h"
#include "comm/run/job/bucket_size.h"
#include "worker/engine/largest_slot.h"
#include "worker/engine/memory_meter.h"
#include "worker/torch/engine/engine_impl.h"

namespace lockstep {
namespace {

// Restores a generator's state afterwards, as if nothing had been drawn.
class KeptGenerator {
 public:
  explicit KeptGenerator(at::Device device)
      : generator_(at::globalContext().defaultGenerator(device)) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeptGenerator() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

// Not even the first trial fits: `what` names the memory that it asked for.
Status nothing_fits(const std::string& what) {
  return {
      Code::kConfig,
      "train.global_batch auto: the smallest slot does not fit into the memory of the device: " +
          what + "; use a smaller model or fewer workers a device"};
}

}  // namespace

// The bytes that the search leaves free for
//   - gradients of the most slots this rank may own, and their sums. On the host they have
//     addresses, but no memory before they are written. A device gets them when it is alone or
//     connected to others (DeviceRegions), and one more for slots that are graphs;
//   - NCCL's buffers and stages;
//   - on the host, the state and the copy that every checkpoint makes of it. A device has allocated
//     its state.
uint64_t EngineImpl::reserved_bytes(uint32_t workers_here) {
  uint64_t bytes = (uint64_t{buffer_->regions()} + 1) * layout_.buffer.elements * sizeof(float);
  if (device_->graphs() != nullptr) bytes += device_->graphs()->bytes();
  if (device_->transfer() != nullptr &&
      (job_.comm().backend() == "nccl" || job_.comm().backend() == "auto"))
    bytes += nccl_bytes(
        {job_.cluster().workers(), workers_here, job_.comm().numerics() != "fast"}, shape_.slots,
        largest_bucket(tensor_bounds(), bucket_bytes(job_.comm(), /*nccl_sums=*/true)));
  if (device_->transfer() != nullptr) return bytes;
  for (const StateTensor& tensor : state_->tensors()) bytes += 2 * tensor.bytes;
  return bytes;
}

// As compute() does for the first slot of a step, up to its gradient. The loader has read all that
// it reads ahead.
Status EngineImpl::compute_trial(uint64_t samples) {
  const RunShape shape{shape_.samples, samples * shape_.slots, shape_.slots};
  const uint32_t ahead = std::max(1u, job_.data().prefetch_batches());
  const Step steps = std::min<Step>(ahead, shape.samples / shape.global_batch);  // full ones
  LOCKSTEP_ASSIGN_OR_RETURN(const auto loader,
                            make_loader(shape, {0, 1}, 0, steps, ahead, nullptr));
  const data::Batch* batch = nullptr;
  for (Step step = 0; step < steps; ++step) {
    LOCKSTEP_ASSIGN_OR_RETURN(batch, loader->next());
  }
  const uint64_t labels =
      is_by_sample() ? shape.global_batch : shape.global_batch * batch->shape.labels();
  const SlotValues values = values_of(*batch, labels);
  LOCKSTEP_RETURN_IF_ERROR(send_slot(*batch, values));
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelOutput output, forward_->train(values.dropout_key));
  float* const region = buffer_->partial(0);
  const SlotMemory memory{region, device_->gradients(region)};
  LOCKSTEP_RETURN_IF_ERROR(backward_slot(output, memory.gradients, nullptr));
  return write_slot_results(*batch, values, memory);
}

Status EngineImpl::trial_step(uint64_t samples) {
  LOCKSTEP_RETURN_IF_ERROR(use_this_thread());
  const KeptGenerator kept(device_->where());
  const KeptGenerator kept_on_host(at::kCPU);  // models from files draw there, too
  return compute_trial(samples);
}

Result<uint64_t> EngineImpl::largest_slot(MemoryMeter& meter, uint32_t workers_here) try {
  LOCKSTEP_RETURN_IF_ERROR(device_->to_device());
  SlotSearch search;
  const BatchRange range = model_->training_batches();
  search.smallest = std::bit_ceil(range.min);
  if (model_->layout().batch_norm_values == 1 && search.smallest == 1) search.smallest = 2;
  if (search.smallest > range.max) search.smallest = range.max;
  search.largest = std::min({limits::kAutoSlotSamples, shape_.samples / shape_.slots, range.max});
  search.reserved_bytes = reserved_bytes(workers_here);
  // Loads everything that only the first step needs, libraries above all, before any measurement.
  const Status first = trial_step(search.smallest);
  if (first.code() == Code::kNoMemory) return nothing_fits(first.message());
  LOCKSTEP_RETURN_IF_ERROR(first);
  LOCKSTEP_ASSIGN_OR_RETURN(search.free_bytes, meter.begin());
  const int64_t end_ns = system_clock_.monotonic_ns() + limits::kAutoTrialsMs * 1'000'000;
  int64_t trial_ns = 0;  // of the last one; the next takes twice as long
  auto found = find_largest_slot(search, [&](uint64_t samples) -> Result<std::optional<uint64_t>> {
    const int64_t begin_ns = system_clock_.monotonic_ns();
    if (begin_ns + 2 * trial_ns > end_ns && samples > search.smallest)
      return std::optional<uint64_t>();
    meter.settle();
    try {
      const Status tried = trial_step(samples);
      if (tried.code() == Code::kNoMemory) return std::optional<uint64_t>();
      LOCKSTEP_RETURN_IF_ERROR(tried);
    } catch (const c10::OutOfMemoryError&) {
      return std::optional<uint64_t>();
    }
    trial_ns = system_clock_.monotonic_ns() - begin_ns;
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t taken, meter.taken());
    return std::optional(taken);
  });
  meter.settle();
  return found;
} catch (const c10::OutOfMemoryError& e) {
  return nothing_fits(e.what_without_backtrace());
} catch (const std::exception& e) {
  return Status(Code::kInternal, std::string("trial step: ") + e.what());
}

}  // namespace lockstep
