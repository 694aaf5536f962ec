#include "coordinator/audit/run_order.h"

#include "coordinator/identity.h"
#include "data/order/digest.h"

namespace lockstep::coordinator {
namespace {

// Which kind of order it is, is its version.
Status read_blocks(const std::vector<IdentityEntry>& identity, uint64_t version,
                   data::BlockShuffle* blocks) {
  if (version == data::kOrderVersion) return Status::ok();
  if (version != data::kBlockOrderVersion) {
    return {Code::kConfig,
            "the samples were put in order by version " + std::to_string(version) +
                ", this program knows versions " + std::to_string(data::kOrderVersion) + " and " +
                std::to_string(data::kBlockOrderVersion) + ": use the lockstep that began the run"};
  }
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kBlockSamplesKey, &blocks->block_samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kWindowBlocksKey, &blocks->window_blocks));
  if (blocks->block_samples > 0 && blocks->window_blocks > 0) return Status::ok();
  return {Code::kBadData, "the journal says that the blocks of the run's order are empty"};
}

}  // namespace

Result<RunOrder> order_of(const std::vector<IdentityEntry>& identity) {
  if (identity.empty()) {
    return Status(Code::kUsage, "no step was ever begun: there is nothing to tell of this run");
  }
  RunOrder order;
  uint64_t version = 0;
  uint64_t slots = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSeedKey, &order.spec.seed));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kOrderVersionKey, &version));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSamplesKey, &order.spec.samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kGlobalBatchKey, &order.shape.global_batch));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSlotsKey, &slots));
  order.shape.samples = order.spec.samples;
  order.shape.slots = static_cast<uint32_t>(slots);
  for (const IdentityEntry& entry : identity) {
    if (entry.key == kFingerprintKey) order.spec.fingerprint = entry.value;
  }
  LOCKSTEP_RETURN_IF_ERROR(read_blocks(identity, version, &order.spec.blocks));
  if (order.shape.samples == 0 || order.shape.global_batch == 0 || slots == 0) {
    return Status(Code::kBadData, "the journal says that the run has no samples or no slots");
  }
  return order;
}

uint64_t OrderedPlan::digest(const data::StepPlan& plan, uint32_t slot) {
  if (!epoch_order_ || epoch_ != plan.epoch) {
    epoch_order_.emplace(order_.spec, plan.epoch);
    epoch_ = plan.epoch;
  }
  return data::planned_digest(*epoch_order_, plan, slot, order_.shape.slots);
}

}  // namespace lockstep::coordinator
