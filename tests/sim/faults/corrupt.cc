#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Strikes once, at any step, because weights are compared until the end of the run. Three ranks
// compare computed values, slot by slot in turn. With three workers every check compares what the
// damaged worker computes. With more of them only its weights are sure to be compared at the next
// check. With two no comparison can tell which is wrong.
class Corrupt final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const uint32_t workers = world_.options.nodes * world_.options.workers_per_node;
    if (workers == kCompared)
      what_ = static_cast<Damage>(prng_.below(static_cast<uint64_t>(Damage::kCount)));
    step_ = prng_.below(world_.options.steps - (is_of_weights() ? 0 : world_.options.check_every));
    world_.on_moment.push_back([this](Moment moment, const std::string& process) {
      if (moment == Moment::kApplied && !is_over_) on_applied(process);
    });
  }
  void undo() override { is_over_ = true; }

 private:
  static constexpr uint32_t kCompared = 3;

  bool is_of_weights() const { return what_ == Damage::kWeights || what_ == Damage::kResult; }

  void on_applied(const std::string& process) {
    SimWorker* worker = cluster_.worker_named(process);
    if (worker == nullptr || worker->trainer()->state().step < step_) return;
    is_over_ = true;
    worker->damage(what_);
  }

  Damage what_ = Damage::kWeights;
  Step step_ = 0;
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<Fault> make_corrupt(Cluster& cluster, uint64_t key) {
  return std::make_unique<Corrupt>(cluster, key);
}

}  // namespace lockstep::sim
