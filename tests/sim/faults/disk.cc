#include "tests/sim/fault.h"

namespace lockstep::sim {
namespace {

// Journal and checkpoints are on one disk, and a full disk fails both.
class DiskTrouble final : public Fault {
 public:
  using Fault::Fault;
  void begin() override {
    at_random_time([this] { strike(); });
  }
  void undo() override {
    world_.disk.is_full = false;
    world_.disk.failing_commits = 0;
    world_.disk.tears_checkpoint = false;
  }

 private:
  void strike() {
    Disk& disk = world_.disk;
    switch (prng_.below(4)) {
      case 0:
        world_.trace.add("a checkpoint is torn", "disk");
        disk.tears_checkpoint = true;
        return;
      case 1:
        world_.trace.add("a commit fails", "disk");
        disk.failing_commits = 1;
        disk.failed_commit_survives = one_in(2);
        disk.has_failed = true;
        return;
      case 2:
        world_.trace.add("a checkpoint rots", "disk");
        return disk.rot(world_.end());
      default:
        world_.trace.add("disk full", "disk");
        disk.is_full = true;
        disk.has_failed = true;
        world_.loop.call_after(between(1, 1'500), [this] { world_.disk.is_full = false; });
    }
  }
};

}  // namespace

std::unique_ptr<Fault> make_disk(Cluster& cluster, uint64_t key) {
  return std::make_unique<DiskTrouble>(cluster, key);
}

}  // namespace lockstep::sim
