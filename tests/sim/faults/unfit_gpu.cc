#include <algorithm>

#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// GPUs change at other times than agents look, so an agent may tell a change late, or never if it
// was undone before. A connection that breaks may lose a notice or double it.
class UnfitGpu final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 4);
    for (int64_t i = 0; i < times; ++i) at_random_time([this] { strike(); });
  }
  void undo() override {
    world_.unfit_gpus.clear();
    look();
  }

 private:
  using Gpu = std::pair<std::string, uint32_t>;

  // Before the first step a run without enough fit GPUs ends.
  bool is_training() const {
    const auto workers = cluster_.workers();
    return std::any_of(workers.begin(), workers.end(), [](const SimWorker* worker) {
      return worker->trainer() != nullptr && worker->trainer()->generation() != 0;
    });
  }

  void strike() {
    if (!is_training()) return;
    const Gpu gpu = {"n" + std::to_string(prng_.below(world_.options.nodes)),
                     static_cast<uint32_t>(prng_.below(world_.options.workers_per_node))};
    change(gpu, true);
    if (one_in(4)) return;
    world_.loop.call_after(between(0, 1'500), [this, gpu] { change(gpu, false); });
  }

  void change(const Gpu& gpu, bool is_unfit) {
    world_.trace.add(is_unfit ? "GPU unfit" : "GPU fit",
                     gpu.first + "/w" + std::to_string(gpu.second));
    if (is_unfit)
      world_.unfit_gpus.insert(gpu);
    else
      world_.unfit_gpus.erase(gpu);
    if (one_in(3)) return look();
    world_.loop.call_after(between(1, 300), [this] { look(); });
  }

  void look() {
    for (SimAgent* agent : cluster_.agents()) agent->look_at_gpus();
  }
};

}  // namespace

std::unique_ptr<Fault> make_unfit_gpu(Cluster& cluster, uint64_t key) {
  return std::make_unique<UnfitGpu>(cluster, key);
}

}  // namespace lockstep::sim
