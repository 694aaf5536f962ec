// sim --seeds A-B | --seed N | --list FILE [--trace] [--faults a,b | --scenario NAME|all]
//     [--drawing 1|2|3] [--keep-going] [--contain-all]
// sim-planted-bugs takes the same arguments, and [--bug NAME] or --planted-bugs
//
// Simulates whole runs of a cluster. Exit code 0: all was well; 1: a check failed, and the command
// that replays it is printed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/sim/scenario.h"
#include "tests/sim/seed_list.h"

#ifdef LOCKSTEP_PLANTED_BUGS
#include "tests/sim/bug_hunt.h"
#endif

namespace lockstep::sim {
namespace {

constexpr size_t kShownEvents = 40;

// "none" is no fault.
bool parse_faults(const std::vector<std::string>& names, std::vector<FaultSpec>* specs) {
  for (const std::string& name : names) {
    if (name == "none") continue;
    const auto spec = parse_fault(name);
    if (!spec) {
      std::fprintf(stderr, "sim: no fault is called '%s'\n", name.c_str());
      return false;
    }
    specs->push_back(*spec);
  }
  return true;
}

void report(const Plan& plan, const Outcome& outcome, const std::string& extra) {
  std::printf("FAILED %s\n", describe(plan).c_str());
  const size_t skipped =
      outcome.last.size() > kShownEvents ? outcome.last.size() - kShownEvents : 0;
  for (size_t i = skipped; i < outcome.last.size(); ++i)
    std::printf("  %s\n", outcome.last[i].c_str());
  for (const Failure& failure : outcome.failures)
    std::printf("%s: %s\n", failure.check.c_str(), failure.text.c_str());
  std::printf("replay: sim --seed %llu%s --trace\n", static_cast<unsigned long long>(plan.seed),
              extra.c_str());
}

// The command of the running simulation, for the last words of an assertion.
std::string& replay_command() {
  static std::string command;
  return command;
}

extern "C" void on_abort(int) {
  const std::string& command = replay_command();
  (void)!::write(STDOUT_FILENO, command.data(), command.size());
}

struct Arguments {
  uint64_t first = 1;
  uint64_t last = 1;
  bool traces = false;
  bool keeps_going = false;
  bool has_faults = false;
  bool has_to_contain_all = false;
  std::vector<std::string> fault_names;
  std::vector<FaultSpec> faults;
  std::string bug;
  std::string scenario;
  std::string list;
  unsigned drawing = static_cast<unsigned>(kUsualDrawing);
};

void print_trace(const Plan& plan, const Outcome& outcome) {
  std::printf("%s\ntrace hash %016llx, %lld ms\n", describe(plan).c_str(),
              static_cast<unsigned long long>(outcome.trace_hash),
              static_cast<long long>(outcome.virtual_ms));
}

// Each seed is another history of the same scenario.
int play_scenarios(const Arguments& arguments) {
  uint64_t played = 0;
  uint64_t failed = 0;
  for (const Scenario& scenario : scenarios()) {
    if (arguments.scenario != "all" && arguments.scenario != scenario.name) continue;
    ++played;
    for (uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
      const std::string extra = std::string(" --scenario ") + scenario.name;
      replay_command() = "FAILED by an assertion\nreplay: sim --seed " + std::to_string(seed) +
                         extra + " --trace\n";
      const Outcome outcome = play(scenario, seed, arguments.traces);
      const Plan plan{seed, scenario.options, {}};
      if (arguments.traces) print_trace(plan, outcome);
      if (outcome.failures.empty()) continue;
      ++failed;
      report(plan, outcome, extra);
      if (!arguments.keeps_going) return 1;
      break;
    }
  }
  if (played == 0) {
    std::fprintf(stderr, "sim: no scenario is called '%s'\n", arguments.scenario.c_str());
    return 64;
  }
  std::printf("%llu scenarios: %llu failed\n", static_cast<unsigned long long>(played),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

// Histories that the seeds must contain, or the checks of these histories check nothing.
struct Contained {
  uint64_t deaths_in_evaluations = 0;
  uint64_t joins_across_evaluations = 0;
  uint64_t rollbacks_across_the_best = 0;

  void add(const Seen& seen) {
    deaths_in_evaluations += seen.deaths_in_evaluations;
    joins_across_evaluations += seen.joins_across_evaluations;
    rollbacks_across_the_best += seen.rollbacks_across_the_best;
  }
  bool has_all() const {
    return deaths_in_evaluations > 0 && joins_across_evaluations > 0 &&
           rollbacks_across_the_best > 0;
  }
  void print() const {
    std::printf(
        "%llu deaths in evaluations, %llu joins across evaluations with patience, %llu rollbacks "
        "across the best\n",
        static_cast<unsigned long long>(deaths_in_evaluations),
        static_cast<unsigned long long>(joins_across_evaluations),
        static_cast<unsigned long long>(rollbacks_across_the_best));
  }
};

// All seeds of one call of the program.
class Play {
 public:
  explicit Play(const Arguments& arguments) : arguments_(arguments) {
    for (const std::string& name : arguments.fault_names) extra_ += " --faults " + name;
  }

  // False: the seed failed, and the rest is not to be played.
  bool play(const ListedSeed& listed) {
    const Plan plan = arguments_.has_faults
                          ? plan_with(listed.seed, arguments_.faults, listed.drawing)
                          : plan_of(listed.seed, listed.drawing);
    const bool is_usual = listed.drawing == kUsualDrawing;
    const std::string drawing = std::to_string(static_cast<unsigned>(listed.drawing));
    const std::string extra = is_usual ? extra_ : extra_ + " --drawing " + drawing;
    replay_command() = "FAILED by an assertion\nreplay: sim --seed " + std::to_string(listed.seed) +
                       extra + " --trace\n";
    const Outcome outcome = simulate(plan, arguments_.traces);
    ++played_;
    events_ += outcome.events;
    stopped_ += outcome.was_stopped_by_samples ? 1 : 0;
    starts_ += outcome.starts;
    contained_.add(outcome.seen);
    if (arguments_.traces) print_trace(plan, outcome);
    if (outcome.failures.empty()) return true;
    ++failed_;
    report(plan, outcome, extra);
    return arguments_.keeps_going;
  }

  // The exit code.
  int sum_up(const std::string& what) const {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf(
        "%s: %llu failed; %llu events, %llu starts, %llu ended by bad "
        "samples, %.1f s\n",
        what.c_str(), number(failed_), number(events_), number(starts_), number(stopped_), seconds);
    contained_.print();
    const bool is_poor = arguments_.has_to_contain_all && !contained_.has_all();
    if (is_poor) std::printf("FAILED: these seeds lack one of these histories\n");
    return failed_ == 0 && !is_poor ? 0 : 1;
  }
  uint64_t played() const { return played_; }

 private:
  const Arguments& arguments_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::string extra_;
  uint64_t played_ = 0;
  uint64_t failed_ = 0;
  uint64_t events_ = 0;
  uint64_t stopped_ = 0;
  uint64_t starts_ = 0;
  Contained contained_;
};

int run(const Arguments& arguments) {
  Play play(arguments);
  for (uint64_t seed = arguments.first; seed <= arguments.last; ++seed)
    if (!play.play({seed, static_cast<Drawing>(arguments.drawing)})) break;
  return play.sum_up("seeds " + std::to_string(arguments.first) + "-" +
                     std::to_string(arguments.last));
}

int run_list(const Arguments& arguments) {
  const auto list = read_seed_list(arguments.list);
  if (!list.is_ok()) {
    std::fprintf(stderr, "sim: %s\n", list.status().message().c_str());
    return 64;
  }
  Play play(arguments);
  for (const ListedSeed& listed : *list)
    if (!play.play(listed)) break;
  return play.sum_up(std::to_string(play.played()) + " seeds of " + arguments.list);
}

bool parse_range(const std::string& text, Arguments* arguments) {
  unsigned long long first = 0;
  unsigned long long last = 0;
  if (std::sscanf(text.c_str(), "%llu-%llu", &first, &last) != 2 || last < first) return false;
  arguments->first = first;
  arguments->last = last;
  return true;
}

}  // namespace
}  // namespace lockstep::sim

int main(int argc, char** argv) {
  using namespace lockstep::sim;
  std::signal(SIGABRT, on_abort);
  CLI::App app("Simulates runs of a whole cluster with faults, each from one seed.", "sim");
  Arguments arguments;
  std::string seeds;
  uint64_t seed = 0;
  auto* range = app.add_option("--seeds", seeds, "Range A-B");
  auto* one = app.add_option("--seed", seed, "One seed")->excludes(range);
  app.add_option("--list", arguments.list, "A file of seeds that once failed")
      ->excludes(range)
      ->excludes(one);
  app.add_option("--drawing", arguments.drawing,
                 "What is drawn: 3, all there is; 2, worlds without what loops came to have "
                 "later; 1, likewise, and faults of all kinds from one stream")
      ->check(CLI::Range(1, 3));
  app.add_flag("--trace", arguments.traces, "Print every event");
  app.add_flag("--keep-going", arguments.keeps_going, "Do not stop at the first failure");
  app.add_flag("--contain-all", arguments.has_to_contain_all,
               "Fail if the seeds have no death in an evaluation, join across one, or rollback "
               "across the best one");
  app.add_option("--scenario", arguments.scenario, "Play this one, or all");
  auto* faults =
      app.add_option("--faults", arguments.fault_names, "Only these, instead of the seed's")
          ->delimiter(',');
#ifdef LOCKSTEP_PLANTED_BUGS
  bool hunts = false;
  app.add_flag("--planted-bugs", hunts, "Plant every bug in turn and find it");
  app.add_option("--bug", arguments.bug, "Plant this one");
#endif
  CLI11_PARSE(app, argc, argv);
  arguments.has_faults = faults->count() > 0;
  if (!parse_faults(arguments.fault_names, &arguments.faults)) return 64;
  if (seeds.empty()) arguments.first = arguments.last = seed;
  if (!seeds.empty() && !parse_range(seeds, &arguments)) {
    std::fprintf(stderr, "sim: --seeds wants a range like 1-1000, not '%s'\n", seeds.c_str());
    return 64;
  }
#ifdef LOCKSTEP_PLANTED_BUGS
  if (hunts) return hunt_all();
  if (!arguments.bug.empty() && !plant_by_name(arguments.bug)) {
    std::fprintf(stderr, "sim: no bug is called '%s'\n", arguments.bug.c_str());
    return 64;
  }
#endif
  if (!arguments.list.empty()) return run_list(arguments);
  return arguments.scenario.empty() ? run(arguments) : play_scenarios(arguments);
}
