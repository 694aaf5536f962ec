#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// If there is only one node, its loss is the loss of all workers.
class LoseNode final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    node_ = static_cast<uint32_t>(prng_.below(world_.options.nodes));
    const bool with_machine = one_in(2);
    const int64_t away_ms = one_in(3) ? between(500, 3'000) : between(3'000, 20'000);
    at_random_time([this, with_machine, away_ms] {
      if (cluster_.is_ending()) return;
      world_.trace.add("node lost", "n" + std::to_string(node_), with_machine);
      cluster_.lose_node(node_, with_machine);
      world_.loop.call_after(away_ms, [this] { bring_back(); });
    });
  }
  void undo() override { bring_back(); }

 private:
  void bring_back() {
    if (!cluster_.is_ending()) cluster_.bring_back_node(node_);
  }

  uint32_t node_ = 0;
};

}  // namespace

std::unique_ptr<Fault> make_lose_node(Cluster& cluster, uint64_t key) {
  return std::make_unique<LoseNode>(cluster, key);
}

}  // namespace lockstep::sim
