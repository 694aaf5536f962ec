#include "comm/run/plan/epoch_order.h"

namespace lockstep {
namespace {

std::variant<PassOrder, MixedOrder> make_epoch(const OrderSpec& spec, Epoch epoch) {
  if (!spec.parts.empty()) return MixedOrder(spec.seed, spec.blocks, spec.parts, epoch);
  return PassOrder({spec.seed, name_key(spec.fingerprint), spec.samples, spec.blocks, spec.classes},
                   epoch);
}

}  // namespace

EpochOrder::EpochOrder(const OrderSpec& spec, Epoch epoch) : order_(make_epoch(spec, epoch)) {}

}  // namespace lockstep
