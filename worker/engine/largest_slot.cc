#include "worker/engine/largest_slot.h"

#include <algorithm>
#include <bit>
#include <string>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

std::string mib(uint64_t bytes) {
  return std::to_string((bytes + kMib - 1) / kMib) + " MiB";
}

Status too_large(const SlotSearch& search, std::optional<uint64_t> taken) {
  return {Code::kConfig,
          "train.global_batch auto: a slot of " + std::to_string(search.smallest) +
              (search.smallest == 1 ? " sample" : " samples") +
              " does not fit into this worker's "
              "memory: it takes " +
              (taken ? mib(*taken) : "more than there is") + ", and the worker can use " +
              mib(usable_bytes(search)) + " of " + mib(search.free_bytes) + " free memory (" +
              mib(search.reserved_bytes) +
              " are kept for gradients, optimizer and checkpoints). Use a smaller model, fewer "
              "workers a machine, or a machine with more memory"};
}

}  // namespace

uint64_t usable_bytes(const SlotSearch& search) {
  const uint64_t share = search.free_bytes / 100 * limits::kAutoMemoryPercent;
  return share - std::min(share, search.reserved_bytes);
}

uint64_t nccl_bytes(const NcclPeers& peers, uint32_t slots, uint64_t bucket_bytes) {
  if (peers.workers <= 1) return 0;
  constexpr uint64_t kStages = 3;
  const uint64_t partials = std::bit_width(std::max(slots, 1u));
  const uint32_t others = peers.workers - 1;
  const uint32_t here = std::min(others, std::max(peers.workers_here, 1u) - 1);
  const uint32_t near = peers.is_exact ? here : std::min(here, limits::kNcclRingPeers);
  return limits::kNcclBytes + limits::kNcclPeerBytes * near +
         limits::kNcclFarPeerBytes * (others - near) + kStages * partials * bucket_bytes;
}

uint64_t largest_bucket(std::span<const uint64_t> tensor_bounds, uint64_t bucket_bytes) {
  uint64_t largest = 0;  // elements of a tensor
  for (size_t i = 0; i + 1 < tensor_bounds.size(); ++i)
    largest = std::max(largest, tensor_bounds[i + 1] - tensor_bounds[i]);
  // A bucket closes at the first cut at which it is full, so a tensor may come on top.
  return bucket_bytes + largest * sizeof(float);
}

Result<uint64_t> find_largest_slot(const SlotSearch& search, const SlotTrial& trial) {
  const uint64_t usable = usable_bytes(search);
  uint64_t fits = 0;
  uint64_t bytes = 0;
  for (uint64_t samples = search.smallest; samples <= std::max(search.largest, search.smallest);
       samples *= 2) {
    if (fits != 0 && bytes > usable / 2) break;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<uint64_t> taken, trial(samples));
    if (!taken || *taken > usable) {
      if (fits == 0) return too_large(search, taken);
      break;
    }
    fits = samples;
    bytes = *taken;
  }
  return fits;
}

}  // namespace lockstep
