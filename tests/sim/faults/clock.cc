#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// As after a suspended machine: monotonic time goes on by a jump.
class ClockJumps final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 2);
    for (int64_t i = 0; i < times; ++i)
      at_random_time([this] {
        const int64_t ms = between(1'000, 60'000);
        world_.trace.add("clock jumps", cluster_.coordinator()->name(),
                         static_cast<uint64_t>(ms));
        cluster_.coordinator()->loop().jump(ms);
      });
  }
};

}  // namespace

std::unique_ptr<Fault> make_clock(Cluster& cluster, uint64_t key) {
  return std::make_unique<ClockJumps>(cluster, key);
}

}  // namespace lockstep::sim
