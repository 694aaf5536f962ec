#include "tests/sim/scenario.h"

#include <iterator>
#include <memory>
#include <utility>

namespace lockstep::sim {

void Script::at(Moment moment, uint64_t nth, Strike strike) {
  const auto left = std::make_shared<uint64_t>(nth);
  at(
      moment, [left](const SimWorker&) { return --*left == 0; }, std::move(strike));
}

void Script::at(Moment moment, std::function<bool(const SimWorker&)> when, Strike strike) {
  const auto is_done = std::make_shared<bool>(false);
  world().on_moment.push_back([this, moment, when = std::move(when), strike = std::move(strike),
                               is_done](Moment now, const std::string& process) {
    if (now != moment || *is_done) return;
    const SimWorker* who = worker(process);
    if (who == nullptr || !when(*who)) return;
    *is_done = true;
    world().trace.add(std::string("scenario at ") + moment_name(moment), process);
    strike(process);
  });
}

void Script::one_ahead(uint64_t nth, int64_t hold_ms, const Strike& then) {
  const auto ahead = std::make_shared<std::string>();
  const auto is_over = std::make_shared<bool>(false);
  at(Moment::kReading, nth, [this, hold_ms, then, ahead, is_over](const std::string& process) {
    *ahead = process;
    later(hold_ms, [then, ahead, is_over] {
      *is_over = true;
      then(*ahead);
    });
  });
  world().on_moment.push_back([this, hold_ms, ahead, is_over](Moment now, const std::string& who) {
    if (now != Moment::kReading || ahead->empty() || *is_over || who == *ahead) return;
    if (SimWorker* other = worker(who)) other->stall(hold_ms + 15);
  });
}

void Script::later(int64_t ms, std::function<void()> fn) {
  world().loop.call_after(ms, std::move(fn));
}

void Script::damage_at(Step step, Damage what) {
  at(
      Moment::kApplied, [step](const SimWorker& w) { return w.trainer()->state().step == step; },
      [this, what](const std::string& name) { worker(name)->damage(what); });
}

void Script::kill(const std::string& process) {
  later(0, [this, process] {
    if (SimWorker* victim = worker(process)) victim->kill();
  });
}

void Script::kill_all_workers() {
  later(0, [this] {
    for (SimWorker* victim : cluster_.workers()) victim->kill();
  });
}

std::vector<SimWorker*> Script::others(const std::string& process) const {
  std::vector<SimWorker*> found;
  for (SimWorker* candidate : cluster_.workers())
    if (candidate->name() != process) found.push_back(candidate);
  return found;
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> kAll = [] {
    std::vector<Scenario> all;
    for (auto part : {scenarios_of_deaths(), scenarios_of_coordinators(), scenarios_of_networks(),
                      scenarios_of_samples(), scenarios_of_machines(), scenarios_of_scripts(),
                      scenarios_of_ends(), scenarios_of_script_ends(), scenarios_of_edges()})
      std::move(part.begin(), part.end(), std::back_inserter(all));
    return all;
  }();
  return kAll;
}

const Scenario* scenario_named(const std::string& name) {
  for (const Scenario& scenario : scenarios())
    if (name == scenario.name) return &scenario;
  return nullptr;
}

Outcome play(const Scenario& scenario, uint64_t seed, bool prints) {
  std::unique_ptr<Script> script;
  const Plan plan{seed, scenario.options, {}};
  Outcome outcome = simulate(plan, prints, [&](Cluster& cluster) {
    script = std::make_unique<Script>(cluster, stream_key({seed, 23}));
    scenario.begin(*script);
  });
  const std::string wrong = outcome.failures.empty() ? scenario.judge(outcome) : "";
  if (!wrong.empty()) outcome.failures.push_back({"scenario", wrong});
  return outcome;
}

}  // namespace lockstep::sim
