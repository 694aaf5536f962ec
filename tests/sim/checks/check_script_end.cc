// An end of the run by its script (coordinator/PROTOCOL.md, "An end by the script").
//
//  - no member applies a step beyond an end that the journal has, unless it is left behind, and no
//    step beyond the end is complete
//  - a generation that starts afterwards has the end as its length
//  - if the script ends the run by steps, no member ends anywhere else
//  - at the end of the run the journal has the end, or the run came to its last step, or to the
//    end of train.patience, before
#include <optional>

#include "coordinator/state/script_end.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

using coordinator::ScriptEnd;

class ScriptEndCheck final : public Check {
 public:
  explicit ScriptEndCheck(World& world) : world_(world) {}

  void on_ended(const Finished& ended) override {
    if (world_.options.script_ends == ScriptEnds::kNever)
      return world_.fail("script-end", ended.process + " ends, and no script asked for it");
    const bool is_by_clock = world_.options.script_ends == ScriptEnds::kByClock;
    if (is_by_clock || world_.is_left_behind(ended.generation)) return;
    const Step last = world_.last(ended.generation);
    if (ended.at.step != last)
      world_.fail("script-end", ended.process + " ends after step " +
                                    std::to_string(ended.at.step) + ", the script after step " +
                                    std::to_string(last));
  }

  void on_applied(const Applied& applied) override {
    if (kept_ && applied.after.step > kept_->step && !world_.is_left_behind(applied.generation))
      world_.fail("script-end", applied.process + " applies step " +
                                    std::to_string(applied.after.step) +
                                    ", and the journal has that the run ends after step " +
                                    std::to_string(kept_->step));
  }

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      if (const auto* setting = std::get_if<coordinator::SettingEntry>(&entry);
          setting != nullptr && setting->key == coordinator::kEndSetting)
        kept_ = coordinator::script_end_in({{setting->key, setting->value}});
      if (const auto* step = std::get_if<coordinator::StepEntry>(&entry);
          step != nullptr && kept_ && step->step >= kept_->step)
        world_.fail("script-end", "step " + std::to_string(step->step) +
                                      " is complete beyond the end after step " +
                                      std::to_string(kept_->step));
      if (const auto* generation = std::get_if<coordinator::GenerationEntry>(&entry))
        check_start(*generation);
    }
  }

  void at_end() override {
    const Step last = world_.last();
    // At an edge train.patience decides before the script does.
    const bool by_patience = world_.options.script_ends == ScriptEnds::kAtEdge &&
                             world_.options.patience > 0 &&
                             world_.track_until(last).is_over(world_.options.patience);
    const bool is_early = world_.end() == last && last < world_.options.steps && !by_patience;
    if (is_early && (!kept_ || kept_->step != world_.last()))
      world_.fail("script-end", "the run ended after step " + std::to_string(world_.last()) +
                                    " and the journal does not say so");
  }

 private:
  void check_start(const coordinator::GenerationEntry& entry) {
    wire::Start start;
    const bool is_told = entry.state == coordinator::GenerationState::kStarted && kept_ &&
                         start.ParseFromString(entry.start) &&
                         start.has_evals();  // else the generation was planned before
    if (is_told && start.total_steps() != kept_->step)
      world_.fail("script-end",
                  "generation " + std::to_string(entry.generation) + " starts with a length of " +
                      std::to_string(start.total_steps()) + " steps, and the run ends after " +
                      std::to_string(kept_->step));
  }

  World& world_;
  std::optional<ScriptEnd> kept_;  // in the journal
};

}  // namespace

std::unique_ptr<Check> make_script_end_check(World& world) {
  return std::make_unique<ScriptEndCheck>(world);
}

}  // namespace lockstep::sim
