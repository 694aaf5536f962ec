#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

class Slow final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const std::string place = "n" + std::to_string(prng_.below(world_.options.nodes)) + "/w" +
                              std::to_string(prng_.below(world_.options.workers_per_node));
    const int64_t times = between(2, 5);
    at_random_time([this, place, times] {
      world_.trace.add("slow", place, static_cast<uint64_t>(times));
      world_.slowness[place] = times;
    });
  }
};

}  // namespace

std::unique_ptr<Fault> make_slow(Cluster& cluster, uint64_t key) {
  return std::make_unique<Slow>(cluster, key);
}

}  // namespace lockstep::sim
