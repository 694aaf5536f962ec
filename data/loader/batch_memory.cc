#include "data/loader/batch_memory.h"

#include <limits>
#include <string>

#include "data/base/machine_memory.h"

namespace lockstep::data {
namespace {

uint64_t aligned(uint64_t bytes) {
  return (bytes + BatchMemory::kAlignment - 1) / BatchMemory::kAlignment * BatchMemory::kAlignment;
}

}  // namespace

Result<BatchMemory> BatchMemory::make(uint64_t batches, uint64_t samples, uint64_t input_bytes,
                                      uint64_t labels_bytes) {
  const uint64_t sample_bytes = input_bytes + labels_bytes;
  if (samples > std::numeric_limits<uint32_t>::max() ||
      samples > machine_memory_bytes() / batches / (sample_bytes + 2 * kAlignment))
    return Status(Code::kConfig,
                  "prefetching " + std::to_string(batches) + " batches of " +
                      std::to_string(samples) + " samples needs more than the memory of this " +
                      "machine; use a smaller train.global_batch, more slots, or a smaller " +
                      "data.prefetch_batches");
  BatchMemory made;
  made.inputs_bytes_ = aligned(samples * input_bytes);
  made.batch_bytes_ = made.inputs_bytes_ + aligned(samples * labels_bytes);
  const uint64_t bytes = made.batch_bytes_ * batches;
  made.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
  if (made.memory_ == nullptr)
    return Status(Code::kConfig, "cannot allocate " + std::to_string(bytes) +
                                     " bytes for batches; use a smaller data.prefetch_batches");
  return made;
}

}  // namespace lockstep::data
