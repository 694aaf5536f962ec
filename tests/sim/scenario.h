// Scripted histories: the histories of PROTOCOL.md that a random fault would hit too rarely, and
// one for each thing that the coordinator does by itself. A script strikes at exact moments.
// Everything else comes from the seed, so one scenario is many histories. README.md maps histories
// to scenarios.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace lockstep::sim {

// The actions of a script. All run through the loop, never from inside another's step.
class Script {
 public:
  Script(Cluster& cluster, uint64_t key) : cluster_(cluster), prng_(key) {}
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  using Strike = std::function<void(const std::string& process)>;
  // Strikes once, the `nth` time (from 1) that a process is at `moment`. A strike that acts at once
  // does so before the process goes on.
  void at(Moment moment, uint64_t nth, Strike strike);
  // Strikes the first time that `when` holds at this moment.
  void at(Moment moment, std::function<bool(const SimWorker&)> when, Strike strike);
  void later(int64_t ms, std::function<void()> fn);
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(prng_.below(static_cast<uint64_t>(most - least) + 1));
  }

  // From the `nth` reading of sums on, all ranks hang before they read, except the first one. For
  // this time only the first rank applies the step.
  void one_ahead(uint64_t nth, int64_t hold_ms, const Strike& then);

  // Damages the first worker that has applied this many steps.
  void damage_at(Step step, Damage what);

  void kill(const std::string& process);
  void kill_all_workers();
  SimWorker* worker(const std::string& process) const { return cluster_.worker_named(process); }
  std::vector<SimWorker*> others(const std::string& process) const;
  Cluster& cluster() { return cluster_; }
  World& world() { return cluster_.world(); }

 private:
  Cluster& cluster_;
  Prng prng_;
};

struct Scenario {
  const char* name;
  WorldOptions options;
  std::function<void(Script&)> begin;
  // Checks the end. Returns what is wrong, in words; empty if all is well.
  std::function<std::string(const Outcome&)> judge;
};

const std::vector<Scenario>& scenarios();
const Scenario* scenario_named(const std::string& name);  // null if there is none

Outcome play(const Scenario& scenario, uint64_t seed, bool prints = false);

// Each is in a file of its own below scenarios/.
std::vector<Scenario> scenarios_of_deaths();
std::vector<Scenario> scenarios_of_coordinators();
std::vector<Scenario> scenarios_of_networks();
std::vector<Scenario> scenarios_of_samples();
std::vector<Scenario> scenarios_of_machines();
std::vector<Scenario> scenarios_of_scripts();
std::vector<Scenario> scenarios_of_ends();
std::vector<Scenario> scenarios_of_script_ends();
std::vector<Scenario> scenarios_of_edges();

}  // namespace lockstep::sim
