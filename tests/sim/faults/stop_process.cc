#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Stops last for less or more than a lease.
class StopProcess final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 3);
    for (int64_t i = 0; i < times; ++i) at_random_time([this] { strike(); });
  }
  // Wakes every process that may be stopped; others ignore it.
  void undo() override {
    cluster_.coordinator()->go_on();
    for (SimWorker* worker : cluster_.workers()) worker->go_on();
  }

 private:
  void strike() {
    const int64_t ms = one_in(2) ? between(10, 2'000) : between(4'000, 20'000);
    if (one_in(3)) {
      const uint32_t pid = cluster_.coordinator()->pid();
      cluster_.coordinator()->stop();
      world_.loop.call_after(ms, [this, pid] {
        if (cluster_.coordinator()->pid() == pid) cluster_.coordinator()->go_on();
      });
      return;
    }
    SimWorker* worker = any_worker();
    if (worker == nullptr) return;
    worker->stop();
    world_.loop.call_after(ms, [this, name = worker->name()] {
      if (SimWorker* stopped = cluster_.worker_named(name)) stopped->go_on();
    });
  }
};

// The run has to go on without the worker: the coordinator has the worker's agent end it.
class StopForEver final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    at_random_time([this] {
      SimWorker* worker = any_worker();
      // The first start waits for all workers, and ends the run if one does not come.
      if (worker == nullptr || worker->trainer() == nullptr) return;
      if (worker->trainer()->generation() != 0) worker->stop();
    });
  }
};

}  // namespace

std::unique_ptr<Fault> make_stop_for_ever(Cluster& cluster, uint64_t key) {
  return std::make_unique<StopForEver>(cluster, key);
}

std::unique_ptr<Fault> make_stop_process(Cluster& cluster, uint64_t key) {
  return std::make_unique<StopProcess>(cluster, key);
}

}  // namespace lockstep::sim
