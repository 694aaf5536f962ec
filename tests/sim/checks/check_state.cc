// I6. In exact mode there is one state for every step, whatever happened. So the check compares
// every worker in the lineage with the undisturbed run after every apply.
//
// An evicted member may go on with what it had already read of its peers until it hears of the
// eviction. Its reads of peers in a newer generation are torn, and it takes no part any more. So
// the check judges members only until they are left behind.
//
// A damage that nothing reports is in every member's state after a step. The run must find it,
// evict its place and no other, and cut the lineage before it.
#include <algorithm>
#include <set>
#include <utility>

#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

class StateCheck final : public Check {
 public:
  StateCheck(World& world, SharedJudged judged) : world_(world), judged_(std::move(judged)) {}

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      const auto* event = std::get_if<coordinator::EventEntry>(&entry);
      if (event != nullptr && event->kind == "corruption" && world_.was_damaged.empty())
        world_.fail("I6", event->text);
      if (const auto* check = std::get_if<coordinator::CheckEntry>(&entry)) on_check(*check);
      if (std::holds_alternative<coordinator::RollbackEntry>(entry)) on_rollback();
      const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry);
      if (generation != nullptr) newest_ = std::max(newest_, generation->generation);
    }
  }

  void on_applied(const Applied& applied) override {
    if (!judged_->covers(world_, applied.generation)) return;
    compare(applied.process, applied.generation, applied.after, /*is_after_edge=*/false);
  }

  void on_crossed(const Crossed& crossed) override {
    if (!judged_->covers(world_, crossed.generation)) return;
    compare(crossed.process, crossed.generation, crossed.after, /*is_after_edge=*/true);
  }

  void on_installed(const Installed& installed) override {
    if (!judged_->covers(world_, installed.generation)) return;
    compare(installed.process, installed.generation, installed.state,
            world_.is_past_edge(installed.at, installed.generation));
  }

 private:
  void on_check(const coordinator::CheckEntry& check) {
    if (check.agreed) return;
    has_differed_ = true;
    if (check.node.empty()) return;
    const std::string place = check.node + "/w" + std::to_string(check.local_rank);
    expelled_.insert(place);
    if (world_.was_damaged.count(place) == 0)
      world_.fail("corruption", place + " is evicted, and nothing is wrong there");
  }

  // The rollback removes a damage that strikes again and again only if its place is evicted.
  void on_rollback() {
    if (!std::exchange(has_differed_, false)) return;
    judged_->tainted_through = newest_;
    std::erase_if(world_.damaged, [this](const auto& damaged) {
      const bool is_once = damaged.second == Damage::kWeights || damaged.second == Damage::kResult;
      return is_once || expelled_.count(damaged.first) != 0;
    });
  }

  void compare(const std::string& process, Generation generation, const ModelState& state,
               bool is_after_edge) {
    const ModelState right = is_after_edge ? world_.reference.after_edge(state.step, generation)
                                           : world_.reference.after(state.step, generation);
    if (state == right) return;
    world_.fail("I6", process + " has another state after " +
                          (is_after_edge ? "the edge of step " : "step ") +
                          std::to_string(state.step) + " in generation " +
                          std::to_string(generation) + " than the undisturbed run");
  }

  World& world_;
  const SharedJudged judged_;
  Generation newest_ = 0;
  bool has_differed_ = false;
  std::set<std::string> expelled_;  // places
};

}  // namespace

std::unique_ptr<Check> make_state_check(World& world, SharedJudged judged) {
  return std::make_unique<StateCheck>(world, std::move(judged));
}

}  // namespace lockstep::sim
