#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// A death inside a commit may leave the commit on the disk: a prefix of the begun commits stays
// (J1).
class CrashCoordinator final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    const int64_t times = between(1, 3);
    for (int64_t i = 0; i < times; ++i) at_random_time([this] { strike(); });
  }
  void undo() override { world_.disk.kill_in_commits = 0; }

 private:
  void strike() {
    if (one_in(2)) return cluster_.coordinator()->kill();
    world_.disk.kill_in_commits = static_cast<uint32_t>(between(1, 4));
    world_.disk.killed_commit_survives = one_in(2);
  }
};

}  // namespace

std::unique_ptr<Fault> make_crash_coordinator(Cluster& cluster, uint64_t key) {
  return std::make_unique<CrashCoordinator>(cluster, key);
}

}  // namespace lockstep::sim
