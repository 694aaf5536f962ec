#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Journal and checkpoints lie on the same disk, and both fail.
class DiskFull final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    at_random_time([this] {
      world_.trace.add("disk full", "disk");
      world_.disk.is_full = true;
      world_.disk.was_full = true;
      world_.loop.call_after(between(1, 1'500), [this] { world_.disk.is_full = false; });
    });
  }
  void undo() override { world_.disk.is_full = false; }
};

}  // namespace

std::unique_ptr<Fault> make_disk(Cluster& cluster, uint64_t key) {
  return std::make_unique<DiskFull>(cluster, key);
}

}  // namespace lockstep::sim
