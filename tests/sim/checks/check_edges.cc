// Edges, seen from outside: what a process installs, applies and crosses tells where it stands.
//
//  - it crosses an edge only with the state before it, so once, and in order
//  - it applies no step without the edge before it
//  - the evaluation before an edge is in the journal when the edge begins
//
// check_state.cc checks that all members come out of an edge with the same bits.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "comm/run/evaluation/evaluation_due.h"
#include "tests/sim/checks/checks.h"

namespace lockstep::sim {
namespace {

class EdgeCheck final : public Check {
 public:
  EdgeCheck(World& world, SharedJudged judged)
      : world_(world),
        judged_(std::move(judged)),
        when_(evaluations_of(world_.job, world_.facts, world_.shape)) {}

  void on_installed(const Installed& installed) override {
    places_[installed.process] = {installed.state.step,
                                  world_.is_past_edge(installed.at, installed.generation)};
  }

  void on_applied(const Applied& applied) override {
    Place& place = places_[applied.process];
    const bool lacks_edge =
        !place.is_past_edge && world_.has_edge(applied.step, applied.generation);
    if (judged_->covers(world_, applied.generation) && lacks_edge)
      world_.fail("edge", applied.process + " applies step " + std::to_string(applied.step) +
                              " without the edge before it");
    place = {applied.after.step, false};
  }

  void on_crossed(const Crossed& crossed) override {
    Place& place = places_[crossed.process];
    const Step step = crossed.after.step;
    const bool is_next = place.step == step && !place.is_past_edge;
    if (!is_next)
      world_.fail("edge", crossed.process + " runs the edge of step " + std::to_string(step) +
                              " and stands " + (place.is_past_edge ? "after" : "before") +
                              " that of step " + std::to_string(place.step));
    place.is_past_edge = true;
    if (!judged_->covers(world_, crossed.generation)) return;
    if (!world_.has_edge(step, crossed.generation))
      world_.fail("edge", crossed.process + " runs an edge after step " + std::to_string(step) +
                              ", where no epoch ends");
    if (crossed.generation <= cut_through_) return;  // it has not heard of the rollback yet
    if (evaluation_due(when_, step, world_.options.steps) && evaluated_.count(step) == 0)
      world_.fail("edge", crossed.process + " runs the edge of step " + std::to_string(step) +
                              ", and the journal does not have its evaluation");
  }

  void on_finished(const Finished& finished) override {
    if (!judged_->covers(world_, finished.generation)) return;
    if (world_.has_edge(finished.at.step, finished.generation) &&
        !places_[finished.process].is_past_edge)
      world_.fail("edge", finished.process + " ends before the last edge");
  }

  void on_commit(const Disk::Entries& entries) override {
    for (const coordinator::JournalEntry& entry : entries) {
      newest_ = std::max(newest_, told_by(entry));
      if (const auto* eval = std::get_if<coordinator::EvalEntry>(&entry))
        evaluated_.insert(eval->step);
      const auto* back = std::get_if<coordinator::RollbackEntry>(&entry);
      if (back == nullptr) continue;
      evaluated_.erase(evaluated_.upper_bound(back->to.step), evaluated_.end());
      cut_through_ = newest_;
    }
  }

 private:
  struct Place {
    Step step = 0;
    bool is_past_edge = false;  // of `step`
  };

  World& world_;
  const SharedJudged judged_;
  const Evaluations when_;
  std::map<std::string, Place> places_;  // by process
  Generation newest_ = 0;
  Generation cut_through_ = 0;  // the newest generation at the last rollback
  std::set<Step> evaluated_;    // steps whose evaluation is in the journal
};

}  // namespace

std::unique_ptr<Check> make_edge_check(World& world, SharedJudged judged) {
  return std::make_unique<EdgeCheck>(world, std::move(judged));
}

}  // namespace lockstep::sim
