#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

class NetworkTrouble final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 4);
    for (int64_t i = 0; i < times; ++i) at_random_time([this] { strike(); });
  }
  void undo() override {
    for (const auto& [a, b] : apart_) world_.network.heal(a, b);
  }

 private:
  void strike() {
    SimWorker* worker = any_worker();
    if (worker == nullptr) return;
    const std::string a = worker->name();
    const std::string b = cluster_.coordinator()->name();
    const uint64_t how = prng_.below(4);
    if (how < 2) world_.disturbed.insert(a);
    switch (how) {
      case 0:
        world_.trace.add("partition", a);
        world_.network.partition(a, b);
        return heal_later(a, b);
      case 1: {
        const bool is_outward = one_in(2);
        world_.trace.add("one-way partition", a, is_outward);
        world_.network.partition_one_way(is_outward ? a : b, is_outward ? b : a);
        return heal_later(a, b);
      }
      case 2: {
        SimWorker* other = any_worker();
        if (other == worker || !one_in(2)) break;
        world_.disturbed.insert(a);
        world_.disturbed.insert(other->name());
        world_.trace.add("link cut", a, 0, 0, other->name());
        return world_.fabric.cut(a, other->name());
      }
      default:
        break;
    }
    world_.trace.add("reset", a);
    world_.network.cut(a, b);
  }

  void heal_later(const std::string& a, const std::string& b) {
    apart_.emplace_back(a, b);
    const int64_t ms = one_in(2) ? between(10, 3'000) : between(4'000, 12'000);
    world_.loop.call_after(ms, [this, a, b] { world_.network.heal(a, b); });
  }

  std::vector<std::pair<std::string, std::string>> apart_;
};

}  // namespace

std::unique_ptr<Fault> make_network(Cluster& cluster, uint64_t key) {
  return std::make_unique<NetworkTrouble>(cluster, key);
}

}  // namespace lockstep::sim
