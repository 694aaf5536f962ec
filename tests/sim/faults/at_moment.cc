#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// The k-th time that some worker is at a chosen point, a process dies, stops or hangs. A random
// time would hardly ever hit these histories. The fault strikes once or twice.
class AtMoment final : public Fault {
 public:
  AtMoment(Cluster& cluster, uint64_t key, const FaultSpec& spec)
      : Fault(cluster, key), spec_(spec) {}

  void begin() override {
    strikes_left_ = between(1, 3);
    choose();
    world_.on_moment.push_back([this](Moment moment, const std::string& process) {
      if (moment != moment_ || strikes_left_ == 0 || --countdown_ > 0) return;
      --strikes_left_;
      strike(process);
      choose();
    });
  }
  void undo() override { strikes_left_ = 0; }

 private:
  void choose() {
    moment_ = spec_.moment;
    if (moment_ == Moment::kCount) moment_ = static_cast<Moment>(prng_.below(kDrawnMoments));
    const bool is_frequent = moment_ <= Moment::kApplied;
    countdown_ = is_frequent ? between(1, 60) : between(1, 4);
  }

  void strike(const std::string& name) {
    Strike how = spec_.strike;
    if (how == Strike::kCount)
      how = static_cast<Strike>(prng_.below(static_cast<uint64_t>(Strike::kCount)));
    const int64_t delay_ms = one_in(2) ? 0 : between(0, 5);
    const int64_t away_ms = between(10, 3'000);
    world_.trace.add(moment_name(moment_), name, static_cast<uint64_t>(how));
    world_.loop.call_after(delay_ms, [this, how, name, away_ms] {
      SimWorker* worker = how == Strike::kKillOther ? any_worker() : cluster_.worker_named(name);
      if (how == Strike::kKillCoordinator) return cluster_.coordinator()->kill();
      if (worker == nullptr) return;
      if (how == Strike::kStall) return worker->stall(away_ms / 4);
      if (how != Strike::kStop) return worker->kill();
      worker->stop();
      world_.loop.call_after(away_ms, [this, name] {
        if (SimWorker* stopped = cluster_.worker_named(name)) stopped->go_on();
      });
    });
  }

  const FaultSpec spec_;
  Moment moment_ = Moment::kCount;
  int64_t countdown_ = 0;
  int64_t strikes_left_ = 0;
};

}  // namespace

std::unique_ptr<Fault> make_at_moment(Cluster& cluster, uint64_t key, const FaultSpec& spec) {
  return std::make_unique<AtMoment>(cluster, key, spec);
}

}  // namespace lockstep::sim
