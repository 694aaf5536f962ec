// I6. In exact mode there is one state for every step, whatever happened: so every worker that is in
// the lineage is compared with the undisturbed run after every apply.
//
// A member that was evicted may go on with what it had already read of its peers, until it hears of
// it; what it reads of those that are in a newer generation is torn, and it takes no part any more.
// So members are judged while no generation is started after a death that is newer than theirs.

#include <algorithm>
#include <set>

#include "tests/sim/checks.h"

namespace lockstep::sim {
namespace {

class StateCheck final : public Check {
 public:
  explicit StateCheck(World& world) : world_(world) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      const auto* event = std::get_if<coordinator::EventEntry>(&entry);
      if (event != nullptr && event->kind == "corruption") world_.fail("I6", event->text);
      const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
      if (generation == nullptr) continue;
      if (generation->state == coordinator::GenerationState::kPlanned)
        planned_.insert(generation->generation);
      if (generation->state == coordinator::GenerationState::kStarted &&
          planned_.count(generation->generation) == 0)
        newest_started_ = std::max(newest_started_, generation->generation);
    }
  }

  void on_applied(const Applied& applied) override {
    if (is_out(applied.generation)) return;
    compare(applied.process, applied.generation, applied.after);
  }

  void on_installed(const Installed& installed) override {
    if (is_out(installed.generation)) return;
    compare(installed.process, installed.generation, installed.state);
  }

 private:
  bool is_out(Generation generation) const { return generation < newest_started_; }

  void compare(const std::string& process, Generation generation, const ModelState& state) {
    if (state == world_.reference.after(state.step)) return;
    world_.fail("I6", process + " has another state after step " + std::to_string(state.step) +
                          " in generation " + std::to_string(generation) +
                          " than the undisturbed run");
  }

  World& world_;
  std::set<Generation> planned_;
  Generation newest_started_ = 0;  // after a death
};

}  // namespace

std::unique_ptr<Check> make_state_check(World& world) {
  return std::make_unique<StateCheck>(world);
}

}  // namespace lockstep::sim
