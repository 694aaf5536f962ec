#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Monotonic time jumps forward, as on a machine that was suspended. A worker that sees it may take
// its coordinator for lost, and the coordinator its workers.
class ClockJumps final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 2);
    for (int64_t i = 0; i < times; ++i)
      at_random_time([this] {
        const int64_t ms = between(1'000, 60'000);
        Process* process = any_process();
        world_.trace.add("clock jumps", process->name(), static_cast<uint64_t>(ms));
        process->loop().jump(ms);
      });
  }

 private:
  Process* any_process() {
    if (one_in(2)) return cluster_.coordinator();
    const auto agents = cluster_.agents();
    if (one_in(3) && !agents.empty()) return agents[prng_.below(agents.size())];
    if (SimWorker* worker = any_worker()) return worker;
    return cluster_.coordinator();
  }
};

}  // namespace

std::unique_ptr<Fault> make_clock(Cluster& cluster, uint64_t key) {
  return std::make_unique<ClockJumps>(cluster, key);
}

}  // namespace lockstep::sim
