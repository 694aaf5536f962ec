#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// The slot is bad from the beginning and for good: samples do not heal.
class BadSlotFault final : public Fault {
 public:
  BadSlotFault(Cluster& cluster, uint64_t key, std::optional<BadSlot> World::*which)
      : Fault(cluster, key), which_(which) {}
  void begin() override {
    world_.*which_ = BadSlot{prng_.below(world_.options.steps),
                             static_cast<uint32_t>(prng_.below(world_.options.slots))};
  }

 private:
  std::optional<BadSlot> World::*const which_;
};

}  // namespace

std::unique_ptr<Fault> make_deadly_slot(Cluster& cluster, uint64_t key) {
  return std::make_unique<BadSlotFault>(cluster, key, &World::deadly);
}

std::unique_ptr<Fault> make_absurd_slot(Cluster& cluster, uint64_t key) {
  return std::make_unique<BadSlotFault>(cluster, key, &World::absurd);
}

}  // namespace lockstep::sim
