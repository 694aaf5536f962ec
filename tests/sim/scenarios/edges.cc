// The script's code between two epochs: which members have run it when the members change. The
// checks test that each state saw each edge once, with its evaluation (checks/check_edges.cc,
// checks/check_state.cc).
#include <algorithm>

#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

constexpr Step kEpoch = 12;  // steps

WorldOptions epochs() {
  WorldOptions options;
  options.is_script = true;
  options.has_edges = true;
  options.samples = kEpoch * options.global_batch;
  options.steps = 2 * kEpoch + 5;  // the run ends within an epoch
  options.checkpoint_every = 4;    // so one checkpoint is of a step with an edge
  options.check_every = 4;
  return options;
}

WorldOptions without_evaluation() {
  WorldOptions options = epochs();
  options.has_eval = false;
  return options;
}

// cluster.hang_s, not the lease, decides when the code between two epochs hangs.
WorldOptions slow_code() {
  WorldOptions options = epochs();
  options.edge_ms = 4'000;
  return options;
}

std::string ended(const Outcome& outcome) {
  return outcome.stuck;
}

std::string went_on_in_place(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1 || outcome.seen.rollbacks != 0) return "the run did not go on in place";
  return outcome.seen.generations < 2 ? "nobody died" : "";
}

// The first member in an edge dies there, or another one that may not be there yet.
void dies_in_an_edge(Script& s) {
  s.at(Moment::kEdge, static_cast<uint64_t>(s.between(1, 8)), [&s](const std::string& name) {
    const auto others = s.others(name);
    const bool is_itself = s.between(0, 1) == 0 || others.empty();
    const std::string victim = is_itself ? name : others.front()->name();
    s.later(s.between(0, 3), [&s, victim] { s.kill(victim); });
  });
}

// One member has run the edge. All others stand still before theirs until it has died.
void only_one_has_crossed(Script& s) {
  s.at(Moment::kEdge, 1, [&s](const std::string& first) {
    for (SimWorker* other : s.others(first)) other->stall(60);
    s.later(s.between(5, 30), [&s, first] { s.kill(first); });
  });
}

// All members but one have run the edge, or are in it, when a death changes the members.
void one_has_not_crossed(Script& s) {
  s.at(Moment::kEvaluated, 1, [&s](const std::string& late) {
    s.worker(late)->stall(80);
    const auto others = s.others(late);
    const std::string victim = others.front()->name();
    s.later(s.between(20, 60), [&s, victim] { s.kill(victim); });
  });
}

void all_die_in_an_edge(Script& s) {
  s.at(Moment::kEdge, static_cast<uint64_t>(s.between(1, 12)),
       [&s](const std::string&) { s.kill_all_workers(); });
}

void one_joins_at_an_edge(Script& s) {
  s.at(Moment::kEvaluating, 1, [&s](const std::string& name) { s.kill(name); });
  s.at(Moment::kEdge, static_cast<uint64_t>(s.between(1, 8)), [&s](const std::string& name) {
    const auto others = s.others(name);
    if (!others.empty()) s.kill(others.front()->name());
  });
}

void stops_at_an_edge(Script& s) {
  s.at(Moment::kEdge, static_cast<uint64_t>(s.between(1, 4)), [&s](const std::string&) {
    s.later(0, [&s] { s.cluster().coordinator()->request_stop(); });
  });
}

// The stop comes after a step with an edge, and so does its checkpoint.
void stops_before_an_edge(Script& s) {
  s.at(
      Moment::kBeforePublish,
      [](const SimWorker& w) { return w.trainer()->state().step == kEpoch - 1; },
      [&s](const std::string&) {
        for (SimWorker* worker : s.cluster().workers()) worker->on_stop("");
      });
}

std::string stopped_and_went_on(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.starts == 2 ? "" : "the run did not stop";
}

// The coordinator is away while an epoch ends. So many batches of records wait that an answer to
// the prepare would overtake the evaluation. A worker dies as the first one comes to the edge.
WorldOptions many_batches() {
  WorldOptions options = epochs();
  options.eval_every = 1;
  options.checkpoint_every = 1'000;
  return options;
}

void coordinator_is_away_at_an_edge(Script& s) {
  const auto is_over = std::make_shared<bool>(false);
  s.world().on_moment.push_back([&s, is_over](Moment now, const std::string& name) {
    const SimWorker* who = s.worker(name);
    if (now != Moment::kApplied || *is_over || who == nullptr || who->trainer() == nullptr) return;
    const Step step = who->trainer()->state().step;
    if (step >= 2 && s.cluster().coordinator() != nullptr && s.cluster().coordinator()->is_alive())
      s.later(0, [&s] { s.cluster().coordinator()->kill(); });
    if (step < kEpoch) return;
    *is_over = true;
    const auto others = s.others(name);
    const std::string victim = others.back()->name();
    s.later(s.between(30, 120), [&s, victim] { s.kill(victim); });
  });
}

}  // namespace

std::vector<Scenario> scenarios_of_edges() {
  return {
      {"dies-in-an-edge", epochs(), dies_in_an_edge, went_on_in_place},
      {"dies-in-an-edge-without-evaluation", without_evaluation(), dies_in_an_edge,
       went_on_in_place},
      {"dies-in-a-slow-edge", slow_code(), dies_in_an_edge, went_on_in_place},
      {"only-one-has-crossed-an-edge", epochs(), only_one_has_crossed, went_on_in_place},
      {"one-has-not-crossed-an-edge", epochs(), one_has_not_crossed, went_on_in_place},
      {"all-die-in-an-edge", epochs(), all_die_in_an_edge, ended},
      {"one-joins-at-an-edge", epochs(), one_joins_at_an_edge, ended},
      {"stops-at-an-edge", epochs(), stops_at_an_edge, stopped_and_went_on},
      {"stops-before-an-edge", epochs(), stops_before_an_edge, stopped_and_went_on},
      {"coordinator-is-away-at-an-edge", many_batches(), coordinator_is_away_at_an_edge, ended},
  };
}

}  // namespace lockstep::sim
