// Faults, each in a file of its own below faults/, separate from the training that they disturb. A
// simulation combines some of them.
//
// A fault acts on its own while the faults last. undo() repairs what the fault has broken, if it
// can be repaired. Every choice comes from the fault's own numbers, so that a new fault leaves the
// others unchanged.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/cluster/cluster.h"

namespace lockstep::sim {

class Fault {
 public:
  Fault(Cluster& cluster, uint64_t key) : cluster_(cluster), world_(cluster.world()), prng_(key) {}
  virtual ~Fault() = default;
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

  virtual void begin() = 0;
  virtual void undo() {}

 protected:
  // Runs `fn` at a random time while the faults last.
  void at_random_time(std::function<void()> fn);
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(prng_.below(static_cast<uint64_t>(most - least) + 1));
  }
  bool one_in(uint64_t n) { return prng_.below(n) == 0; }
  SimWorker* any_worker();  // null: none lives

  Cluster& cluster_;
  World& world_;
  Prng prng_;
};

enum class FaultKind : uint8_t {
  kCrashWorker,
  kCrashCoordinator,
  kCrashAll,
  kStopProcess,
  kNetwork,
  kClock,
  kDisk,
  kChange,
  kMoment,
  kOneAhead,
  kLoseNode,
  kStopForEver,
  kOneWay,
  kCorrupt,
  kDeadlySlot,
  kAbsurdSlot,
  kSlow,
  kUnfitGpu,
  kCount,
};

enum class Strike : uint8_t { kKill, kKillOther, kKillCoordinator, kStop, kStall, kCount };

// A kind of fault; for kMoment also where and how it strikes. kCount: anywhere, anyhow.
struct FaultSpec {
  FaultKind kind = FaultKind::kCount;
  Moment moment = Moment::kCount;
  Strike strike = Strike::kCount;

  FaultSpec(FaultKind k, Moment m = Moment::kCount, Strike s = Strike::kCount)  // NOLINT
      : kind(k), moment(m), strike(s) {}
};
// "crash-worker", "at-moment:transfer:kill"
std::string fault_name(const FaultSpec& spec);
std::optional<FaultSpec> parse_fault(const std::string& name);

inline constexpr int64_t kFaultsLastMs = 3'000;

std::unique_ptr<Fault> make_fault(const FaultSpec& spec, Cluster& cluster, uint64_t key);

// kill -9 of workers, one at a time or several at once. faults/crash_worker.cc
std::unique_ptr<Fault> make_crash_worker(Cluster& cluster, uint64_t key);
// kill -9 of the coordinator, anywhere or inside a commit. faults/crash_coordinator.cc
std::unique_ptr<Fault> make_crash_coordinator(Cluster& cluster, uint64_t key);
// kill -9 of all workers, of a node, or of everything. faults/crash_all.cc
std::unique_ptr<Fault> make_crash_all(Cluster& cluster, uint64_t key);
// SIGSTOP of a worker or the coordinator, SIGCONT later. faults/stop_process.cc
std::unique_ptr<Fault> make_stop_process(Cluster& cluster, uint64_t key);
// Resets, partitions in one or both directions, a cut data link. faults/network.cc
std::unique_ptr<Fault> make_network(Cluster& cluster, uint64_t key);
// The clock of the coordinator, of a worker or an agent jumps. faults/clock.cc
std::unique_ptr<Fault> make_clock(Cluster& cluster, uint64_t key);
// A full disk for a while, a failing write, a torn checkpoint. faults/disk.cc
std::unique_ptr<Fault> make_disk(Cluster& cluster, uint64_t key);
// No fault: drain, scale, stop of the run. faults/change.cc
std::unique_ptr<Fault> make_change(Cluster& cluster, uint64_t key);
// Strikes exactly at a moment of a history: this worker, another one, or the coordinator.
// faults/at_moment.cc
std::unique_ptr<Fault> make_at_moment(Cluster& cluster, uint64_t key, const FaultSpec& spec);
// One worker gets a step ahead of all others, and it or another worker dies. faults/one_ahead.cc
std::unique_ptr<Fault> make_one_ahead(Cluster& cluster, uint64_t key);
// A node other than the coordinator's loses its agent and all its workers at once, with or without
// their last messages. It comes back later. faults/lose_node.cc
std::unique_ptr<Fault> make_lose_node(Cluster& cluster, uint64_t key);
// SIGSTOP without SIGCONT. faults/stop_process.cc
std::unique_ptr<Fault> make_stop_for_ever(Cluster& cluster, uint64_t key);
// The data plane loses one direction: between two workers, or between one and all others.
// faults/one_way.cc
std::unique_ptr<Fault> make_one_way(Cluster& cluster, uint64_t key);
// A worker computes or holds something wrong, in silence. faults/corrupt.cc
std::unique_ptr<Fault> make_corrupt(Cluster& cluster, uint64_t key);
// Samples that kill their readers, or make the loss NaN or infinite. faults/bad_slot.cc
std::unique_ptr<Fault> make_deadly_slot(Cluster& cluster, uint64_t key);
std::unique_ptr<Fault> make_absurd_slot(Cluster& cluster, uint64_t key);
// A place computes several times as long as the others. faults/slow.cc
std::unique_ptr<Fault> make_slow(Cluster& cluster, uint64_t key);
// GPUs become unfit and fit again, and agents say so: late, doubled, or both at once.
// faults/unfit_gpu.cc
std::unique_ptr<Fault> make_unfit_gpu(Cluster& cluster, uint64_t key);

}  // namespace lockstep::sim
