#include "coordinator/audit/run_order.h"

#include <utility>

#include "comm/base/limits.h"
#include "comm/run/plan/digest.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {
namespace {

Status read_classes(const std::vector<IdentityEntry>& identity, uint32_t* classes) {
  uint64_t count = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kLengthClassesKey, &count));
  *classes = static_cast<uint32_t>(count);
  if (count > 0 && count <= limits::kLengthClasses) return Status::ok();
  return {Code::kBadData, "the journal says that the run's order has " + std::to_string(count) +
                              " classes of length"};
}

// Which kind of order it is, is its version.
Status read_kind(const std::vector<IdentityEntry>& identity, OrderKind* kind) {
  uint64_t version = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kOrderVersionKey, &version));
  constexpr OrderKind kKinds[] = {{},
                                  {.has_blocks = true},
                                  {.has_classes = true},
                                  {.is_mixed = true},
                                  {.has_blocks = true, .is_mixed = true}};
  for (const OrderKind& known : kKinds) {
    if (order_version(known) != version) continue;
    *kind = known;
    return Status::ok();
  }
  return {Code::kConfig,
          "version " + std::to_string(version) +
              " of Lockstep's order put the samples in order, this program knows versions " +
              std::to_string(kOrderVersion) + " to " + std::to_string(kClassOrderVersion) +
              ": use the lockstep that began the run"};
}

Status read_blocks(const std::vector<IdentityEntry>& identity, BlockShuffle* blocks) {
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kBlockSamplesKey, &blocks->block_samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kWindowBlocksKey, &blocks->window_blocks));
  if (blocks->block_samples > 0 && blocks->window_blocks > 0) return Status::ok();
  return {Code::kBadData, "the journal says that the blocks of the run's order are empty"};
}

const std::string* value_of(const std::vector<IdentityEntry>& identity, const std::string& key) {
  for (const IdentityEntry& entry : identity) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Status read_parts(const std::vector<IdentityEntry>& identity, OrderSpec* spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(spec->parts, stored_parts(identity));
  const Status possible = check_mixture(spec->parts);
  if (!possible.is_ok())
    return {Code::kBadData,
            "the journal holds an impossible mixture of data sets: " + possible.message()};
  if (units_of(spec->parts) == spec->samples) return Status::ok();
  return {Code::kBadData, "the journal says that an epoch has " + std::to_string(spec->samples) +
                              " samples, but its mixture of data sets has " +
                              std::to_string(units_of(spec->parts))};
}

}  // namespace

Result<RunOrder> order_of(const std::vector<IdentityEntry>& identity) {
  if (identity.empty()) {
    return Status(Code::kUsage, "the run never began a step, so there is nothing to show");
  }
  RunOrder order;
  OrderKind kind;
  uint64_t slots = 0;
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSeedKey, &order.spec.seed));
  LOCKSTEP_RETURN_IF_ERROR(read_kind(identity, &kind));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSamplesKey, &order.spec.samples));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kGlobalBatchKey, &order.shape.global_batch));
  LOCKSTEP_RETURN_IF_ERROR(read_number(identity, kSlotsKey, &slots));
  order.shape.samples = order.spec.samples;
  order.shape.slots = static_cast<uint32_t>(slots);
  LOCKSTEP_ASSIGN_OR_RETURN(order.shape.turns, stored_turns(identity));
  if (const std::string* const value = value_of(identity, kFingerprintKey); value != nullptr)
    order.spec.fingerprint = *value;
  if (kind.has_blocks) LOCKSTEP_RETURN_IF_ERROR(read_blocks(identity, &order.spec.blocks));
  if (kind.has_classes) LOCKSTEP_RETURN_IF_ERROR(read_classes(identity, &order.spec.classes));
  if (kind.is_mixed) LOCKSTEP_RETURN_IF_ERROR(read_parts(identity, &order.spec));
  if (order.shape.samples == 0 || order.shape.global_batch == 0 || slots == 0) {
    return Status(Code::kBadData, "the journal says that the run has no samples or no slots");
  }
  return order;
}

uint64_t OrderedPlan::digest(const StepPlan& plan, uint32_t slot) {
  if (!epoch_order_ || epoch_ != plan.epoch) {
    epoch_order_.emplace(order_.spec, plan.epoch);
    epoch_ = plan.epoch;
  }
  return planned_digest(*epoch_order_, plan, slot, order_.shape.slots);
}

}  // namespace lockstep::coordinator
