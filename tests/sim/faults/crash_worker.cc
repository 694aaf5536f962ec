#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

class CrashWorker final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 3);
    for (int64_t i = 0; i < times; ++i)
      at_random_time([this] {
        const int64_t victims = one_in(4) ? 2 : 1;
        for (int64_t v = 0; v < victims; ++v)
          if (SimWorker* worker = any_worker()) worker->kill();
      });
  }
};

}  // namespace

std::unique_ptr<Fault> make_crash_worker(Cluster& cluster, uint64_t key) {
  return std::make_unique<CrashWorker>(cluster, key);
}

}  // namespace lockstep::sim
