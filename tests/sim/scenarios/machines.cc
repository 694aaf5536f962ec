// Ill machines: one hangs for good, one is slow, one computes wrong.
#include "tests/sim/scenario.h"

namespace lockstep::sim {
namespace {

WorldOptions workers(uint32_t nodes, uint32_t each) {
  WorldOptions options;
  options.nodes = nodes;
  options.workers_per_node = each;
  options.checkpoint_every = 4;
  return options;
}

WorldOptions compared(uint32_t count) {
  WorldOptions options = workers(1, count);
  options.check_every = 4;
  return options;
}

WorldOptions lasting(uint64_t steps) {
  WorldOptions options = workers(2, 2);
  options.steps = steps;
  options.checkpoint_every = steps / 4;
  return options;
}

void stopped(Script& s, int64_t away_ms) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s, away_ms](const std::string& name) {
         s.worker(name)->stop();
         if (away_ms == 0) return;
         s.later(away_ms, [&s, name] {
           if (SimWorker* worker = s.worker(name)) worker->go_on();
         });
       });
}

std::string replaced(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.kills != 1) return std::to_string(outcome.seen.kills) + " processes were killed";
  return outcome.seen.members.size() == 5 ? "" : "nobody took its place";
}

std::string spared(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.kills == 0 ? "" : "a process that came back was killed";
}

constexpr int64_t kForEver = 1'000'000'000;

void all_hang_once(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s](const std::string& name) {
         for (SimWorker* other : s.others(name)) other->stall(kForEver);
         s.worker(name)->stall(kForEver);
       });
}

void all_hang_in_a_step(Script& s) {
  const auto step = static_cast<Step>(s.between(0, 23));
  s.world().on_moment.push_back([&s, step](Moment now, const std::string& name) {
    if (now != Moment::kBeforePublish) return;
    SimWorker* const who = s.worker(name);
    if (who != nullptr && who->trainer()->state().step == step) who->stall(kForEver);
  });
}

std::string went_on(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.starts == 1 ? "" : "the run had to be started again";
}

// The run ends with 65 if both workers had the same samples in hand.
std::string ended_at_the_second(const Outcome& outcome) {
  if (outcome.stuck != "the run ended with 65" && outcome.stuck != "the run ended with 70")
    return "it was not ended: " + outcome.stuck;
  return outcome.seen.terms <= 3
             ? ""
             : "they hung in " + std::to_string(outcome.seen.terms - 1) + " terms";
}

void damaged(Script& s, Damage what) {
  s.damage_at(static_cast<Step>(s.between(1, 15)), what);
}

// The last check is at step 16. At the end, only the final comparison of weights can find it.
void damaged_after_last_check(Script& s) {
  s.damage_at(static_cast<Step>(s.between(17, 23)), Damage::kWeights);
}

// Only the end of the run compares this step.
void damaged_before_the_end(Script& s, Damage what) {
  s.damage_at(s.world().end() - 1, what);
}

// No other worker has computed with the wrong state when it is compared. So the same step, done
// again, tells which worker was wrong.
void damaged_before_check(Script& s) {
  s.at(
      Moment::kApplied, [](const SimWorker& w) { return w.trainer()->state().step % 4 == 3; },
      [&s](const std::string& name) { s.worker(name)->damage(Damage::kResult); });
}

// StateCheck tests that the named worker is the right one.
std::string named_at_once(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.starts != 1) return "the run had to be started again";
  if (outcome.seen.rollbacks != 1)
    return "the run was rolled back " + std::to_string(outcome.seen.rollbacks) + " times";
  return outcome.seen.named.size() == 1 ? "" : "nobody was named";
}

// The damage has spread to the other worker, or the run cannot tell whether it has.
std::string undone(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  return outcome.seen.rollbacks == 1 && outcome.starts == 1 ? "" : "it was not undone at once";
}

// The wrong result differs each time. The right result is the same whenever the same step is
// compared first, so two attempts at it name the right worker, as StateCheck tests.
std::string ended_or_named(const Outcome& outcome) {
  if (outcome.stuck.empty()) return outcome.seen.named.size() == 1 ? "" : "nobody was named";
  if (outcome.stuck != "the run ended with 70") return "it was not ended: " + outcome.stuck;
  return outcome.seen.named.empty() ? "" : "somebody was named by a guess";
}

void set_unfit(Script& s, const std::set<std::pair<std::string, uint32_t>>& gpus) {
  s.world().unfit_gpus = gpus;
  for (SimAgent* agent : s.cluster().agents()) agent->look_at_gpus();
}

void unfit_for_a_while(Script& s, const std::set<std::pair<std::string, uint32_t>>& gpus,
                       int64_t ms, const std::function<void()>& meanwhile) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)),
       [&s, gpus, ms, meanwhile](const std::string&) {
         set_unfit(s, gpus);
         s.later(s.between(0, 100), meanwhile);
         s.later(ms, [&s] { set_unfit(s, {}); });
       });
}

void scale(Script& s, uint32_t workers) {
  wire::Command command;
  command.set_scale_to(workers);
  s.cluster().command(command);
}

// While no worker is wanted at the place, its GPU becomes unfit, and fit again just before a worker
// is wanted there. The agent has looked only in between.
void scaled_over_an_unfit_gpu(Script& s) {
  s.at(Moment::kBeforePublish, static_cast<uint64_t>(s.between(1, 40)), [&s](const std::string&) {
    s.later(0, [&s] { scale(s, 3); });
    s.later(600, [&s] { set_unfit(s, {{"n1", 1}}); });
    s.later(800, [&s] {
      s.world().unfit_gpus.clear();
      scale(s, 4);
    });
    s.later(s.between(1'000, 1'300), [&s] { set_unfit(s, {}); });
  });
}

// The four members, and one that came to the place when its GPU was fit again.
std::string left_and_came_back(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.evictions != 0 || outcome.starts != 1) return "somebody was taken for dead";
  return outcome.seen.members.size() == 5
             ? ""
             : std::to_string(outcome.seen.members.size()) + " processes were members";
}

// One of four is four times as slow, and there are enough slots to move.
std::string rebalanced(const Outcome& outcome) {
  if (!outcome.stuck.empty()) return outcome.stuck;
  if (outcome.seen.terms != 1 || outcome.seen.evictions != 0) return "somebody was taken for dead";
  if (outcome.seen.rebalances == 0) return "the slots did not follow the speed";
  return outcome.seen.rebalances <= 2 ? "" : "the slots do not come to rest";
}

}  // namespace

std::vector<Scenario> scenarios_of_machines() {
  WorldOptions slow = lasting(300);
  slow.slots = 16;
  slow.global_batch = 16;
  slow.samples = 128;
  slow.compute_ms = 60;
  slow.rebalances = true;
  WorldOptions rare = compared(3);
  rare.check_every = 100;
  rare.checkpoint_every = 0;
  WorldOptions rare_of_two = compared(2);
  rare_of_two.check_every = 100;
  rare_of_two.checkpoint_every = 0;
  WorldOptions impatient = rare;
  impatient.steps = 80;
  impatient.eval_every = 3;
  impatient.patience = 4;
  return {
      {"stopped-for-ever", lasting(120), [](Script& s) { stopped(s, 0); }, replaced},
      {"wakes-up-in-time", lasting(120), [](Script& s) { stopped(s, 1'400); }, spared},
      {"all-hang-once", workers(1, 3), all_hang_once, went_on},
      {"the-only-one-hangs-once", workers(1, 1), all_hang_once, went_on},
      {"all-hang-in-a-step", workers(1, 3), all_hang_in_a_step, ended_at_the_second},
      {"the-only-one-hangs-in-a-step", workers(1, 1), all_hang_in_a_step, ended_at_the_second},
      {"one-of-three-holds-other-weights", compared(3),
       [](Script& s) { damaged(s, Damage::kWeights); }, named_at_once},
      {"one-of-three-computes-wrong", compared(3),
       [](Script& s) { damaged(s, Damage::kGradients); }, named_at_once},
      {"one-of-three-adds-up-wrong", compared(3), [](Script& s) { damaged(s, Damage::kSums); },
       named_at_once},
      {"one-of-two-holds-other-weights", compared(2), damaged_before_check, named_at_once},
      {"one-of-two-holds-them-for-long", compared(2),
       [](Script& s) { damaged(s, Damage::kWeights); }, undone},
      {"one-of-two-computes-wrong", compared(2), [](Script& s) { damaged(s, Damage::kGradients); },
       ended_or_named},
      {"one-of-three-differs-at-the-end", rare, damaged_after_last_check, named_at_once},
      {"one-of-two-differs-at-the-end", rare_of_two, damaged_after_last_check, undone},
      {"computes-wrong-at-the-end", rare,
       [](Script& s) { damaged_before_the_end(s, Damage::kGradients); }, named_at_once},
      {"adds-up-wrong-at-the-end", rare,
       [](Script& s) { damaged_before_the_end(s, Damage::kSums); }, named_at_once},
      {"computes-wrong-where-patience-ends", impatient,
       [](Script& s) { damaged_before_the_end(s, Damage::kGradients); }, named_at_once},
      {"adds-up-wrong-where-patience-ends", impatient,
       [](Script& s) { damaged_before_the_end(s, Damage::kSums); }, named_at_once},
      {"unfit-and-fit-again", lasting(400),
       [](Script& s) {
         unfit_for_a_while(s, {{"n1", 1}}, 500, [] {});
       },
       left_and_came_back},
      {"coordinator-dies-with-an-unfit-gpu", lasting(400),
       [](Script& s) {
         unfit_for_a_while(s, {{"n1", 1}}, 2'000, [&s] { s.cluster().coordinator()->kill(); });
       },
       left_and_came_back},
      {"scaled-over-an-unfit-gpu", lasting(400), scaled_over_an_unfit_gpu, left_and_came_back},
      {"all-gpus-unfit", lasting(400),
       [](Script& s) {
         unfit_for_a_while(s, {{"n0", 0}, {"n0", 1}, {"n1", 0}, {"n1", 1}}, 500, [] {});
       },
       went_on},
      {"one-is-slow", slow, [](Script& s) { s.world().slowness["n0/w1"] = 4; }, rebalanced},
  };
}

}  // namespace lockstep::sim
