#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

class CrashAll final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    at_random_time([this] { strike(); });
  }
  void undo() override {
    if (cluster_.is_ending()) return;
    for (uint32_t node = 0; node < world_.options.nodes; ++node) cluster_.bring_back_node(node);
  }

 private:
  void strike() {
    switch (prng_.below(4)) {
      case 0:
        return cluster_.lose_everything();
      case 1:
        return cluster_.lose_node(prng_.below(world_.options.nodes));
      case 2:
        cluster_.coordinator()->kill();
        [[fallthrough]];
      default:
        for (SimWorker* worker : cluster_.workers()) worker->kill();
    }
  }
};

}  // namespace

std::unique_ptr<Fault> make_crash_all(Cluster& cluster, uint64_t key) {
  return std::make_unique<CrashAll>(cluster, key);
}

}  // namespace lockstep::sim
