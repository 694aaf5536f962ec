#include "tests/sim/fault.h"

#include <array>

namespace lockstep::sim {

void Fault::at_random_time(std::function<void()> fn) {
  world_.loop.call_after(between(0, kFaultsLastMs), std::move(fn));
}

SimWorker* Fault::any_worker() {
  const auto workers = cluster_.workers();
  return workers.empty() ? nullptr : workers[prng_.below(workers.size())];
}

namespace {

using Maker = std::unique_ptr<Fault> (*)(Cluster&, uint64_t);
struct Kind {
  const char* name;
  Maker make;  // null: it takes the whole spec
};
constexpr std::array<Kind, static_cast<size_t>(FaultKind::kCount)> kKinds = {{
    {"crash-worker", make_crash_worker},
    {"crash-coordinator", make_crash_coordinator},
    {"crash-all", make_crash_all},
    {"stop-process", make_stop_process},
    {"network", make_network},
    {"clock", make_clock},
    {"disk", make_disk},
    {"change", make_change},
    {"at-moment", nullptr},
    {"one-ahead", make_one_ahead},
    {"lose-node", make_lose_node},
    {"stop-for-ever", make_stop_for_ever},
    {"one-way", make_one_way},
    {"corrupt", make_corrupt},
    {"deadly-slot", make_deadly_slot},
    {"absurd-slot", make_absurd_slot},
    {"slow", make_slow},
    {"unfit-gpu", make_unfit_gpu},
}};

constexpr std::array<const char*, static_cast<size_t>(Strike::kCount)> kStrikes = {
    "kill", "kill-other", "kill-coordinator", "stop", "stall"};

}  // namespace

std::string fault_name(const FaultSpec& spec) {
  std::string name = kKinds[static_cast<size_t>(spec.kind)].name;
  if (spec.moment == Moment::kCount) return name;
  return name + ":" + moment_name(spec.moment) + ":" + kStrikes[static_cast<size_t>(spec.strike)];
}

// Tries all names: there are few.
std::optional<FaultSpec> parse_fault(const std::string& name) {
  for (uint8_t kind = 0; kind < static_cast<uint8_t>(FaultKind::kCount); ++kind) {
    const FaultSpec spec(static_cast<FaultKind>(kind));
    if (fault_name(spec) == name) return spec;
  }
  for (uint8_t moment = 0; moment < static_cast<uint8_t>(Moment::kCount); ++moment) {
    for (uint8_t strike = 0; strike < static_cast<uint8_t>(Strike::kCount); ++strike) {
      const FaultSpec spec(FaultKind::kMoment, static_cast<Moment>(moment),
                           static_cast<Strike>(strike));
      if (fault_name(spec) == name) return spec;
    }
  }
  return std::nullopt;
}

std::unique_ptr<Fault> make_fault(const FaultSpec& spec, Cluster& cluster, uint64_t key) {
  const Maker make = kKinds[static_cast<size_t>(spec.kind)].make;
  return make == nullptr ? make_at_moment(cluster, key, spec) : make(cluster, key);
}

}  // namespace lockstep::sim
