#include <algorithm>

#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Orders that people give while a run goes on.
class Change final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 3);
    for (int64_t i = 0; i < times; ++i) at_random_time([this] { ask(); });
  }

 private:
  // Before the first step the run waits for all workers, and would miss one that leaves.
  bool is_training() const {
    const auto workers = cluster_.workers();
    return std::any_of(workers.begin(), workers.end(), [](const SimWorker* worker) {
      return worker->trainer() != nullptr && worker->trainer()->generation() != 0;
    });
  }

  void ask() {
    if (!is_training()) return;
    wire::Command command;
    switch (prng_.below(5)) {
      case 0:
        command.set_drain_node("n" + std::to_string(prng_.below(world_.options.nodes)));
        return cluster_.command(command);
      case 1:
        if (SimWorker* worker = any_worker()) command.set_drain_member(worker->member());
        if (command.drain_member() == 0) return;
        return cluster_.command(command);
      case 2:
        if (SimWorker* worker = any_worker()) worker->terminate();
        return;
      case 3:
        if (one_in(3)) return cluster_.coordinator()->request_stop();
        [[fallthrough]];
      default: {
        const uint32_t most = world_.options.nodes * world_.options.workers_per_node;
        command.set_scale_to(static_cast<uint32_t>(between(1, most + 1)));
        return cluster_.command(command);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Fault> make_change(Cluster& cluster, uint64_t key) {
  return std::make_unique<Change>(cluster, key);
}

}  // namespace lockstep::sim
