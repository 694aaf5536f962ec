// Connections that break although no process dies.
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions three() {
  WorldOptions options;
  options.nodes = 3;
  options.workers_per_node = 1;
  options.slots = 3;
  return options;
}

void reset_control(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(1, 60)), [&s](const std::string& name) {
    s.later(0, [&s, name] { s.world().network.cut(name, s.cluster().coordinator()->name()); });
  });
}

std::string unmoved(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.generations == 1 && outcome.seen.evictions == 0 ? "" : "somebody was evicted";
}

// Cuts the link between two workers for good.
void cut_link(Script& s) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(1, 60)), [&s](const std::string& name) {
    const std::string other = s.others(name).front()->name();
    s.world().disturbed.insert({name, other});
    s.later(0, [&s, name, other] { s.world().fabric.cut(name, other); });
  });
}

// Cuts one worker off from both others. That worker has to go, whatever its rank is.
void cut_off(Script& s, bool is_inward) {
  s.at(Moment::kApplied, static_cast<uint64_t>(s.between(1, 60)),
       [&s, is_inward](const std::string& name) {
         s.world().disturbed.insert(name);
         for (SimWorker* other : s.others(name)) {
           s.world().trace.add("one-way cut", name, is_inward, 0, other->name());
           if (is_inward) s.world().fabric.cut_one_way(other->name(), name);
           if (!is_inward) s.world().fabric.cut_one_way(name, other->name());
         }
       });
}

// The two workers that are left finish before the third one may come back.
std::string one_evicted(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.terms != 1) return "the run did not go on in place";
  return outcome.seen.evictions <= 1 && outcome.seen.generations <= 4 ? "" : "it loops";
}

}  // namespace

std::vector<Scenario> scenarios_of_networks() {
  return {
      {"control-connection-reset", three(), reset_control, unmoved},
      {"one-link-cut", three(), cut_link, one_evicted},
      {"nobody-hears-one", three(), [](Script& s) { cut_off(s, false); }, one_evicted},
      {"one-hears-nobody", three(), [](Script& s) { cut_off(s, true); }, one_evicted},
  };
}

}  // namespace lockstep::sim
