#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Frames from one worker stop to reach another worker, or all others, for good, and no process
// hears of it. Control connections still work, so no lease ends. The generation stands still until
// the coordinator forms it again; then two workers cannot connect. A worker that is cut off from
// all others has to go, so only that worker may be taken for dead. If two workers cannot hear each
// other, either may be.
class OneWay final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    at_random_time([this] { strike(); });
  }

 private:
  void strike() {
    const auto workers = cluster_.workers();
    if (workers.size() < 2) return;
    const size_t from = prng_.below(workers.size());
    const bool is_inward = one_in(2);
    const bool is_from_all = workers.size() > 2 && one_in(2);
    const size_t one = (from + 1 + prng_.below(workers.size() - 1)) % workers.size();
    for (size_t to = 0; to < workers.size(); ++to) {
      if (to == from || (!is_from_all && to != one)) continue;
      cut(*workers[from], *workers[to], is_inward);
      if (!is_from_all) world_.disturbed.insert(workers[to]->name());
    }
    world_.disturbed.insert(workers[from]->name());
  }

  void cut(const SimWorker& from, const SimWorker& to, bool is_inward) {
    world_.trace.add("one-way cut", (is_inward ? to : from).name(), 0, 0,
                     (is_inward ? from : to).name());
    world_.fabric.cut_one_way((is_inward ? to : from).name(), (is_inward ? from : to).name());
  }
};

}  // namespace

std::unique_ptr<Fault> make_one_way(Cluster& cluster, uint64_t key) {
  return std::make_unique<OneWay>(cluster, key);
}

}  // namespace lockstep::sim
