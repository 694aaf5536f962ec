// A World whose members compare what they hold and compute.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/state/corruption.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

inline constexpr Step kEvery = 2;

inline Options checking_options(uint32_t workers, uint64_t max_steps = 100) {
  Options options = small_options(workers, max_steps);
  options.job.mutable_train()->set_check_every(kEvery);
  return options;
}

// The report of a healthy member; every rank has a part in every piece.
inline wire::CheckReport healthy(Step applied) {
  wire::CheckReport report;
  report.set_applied(applied);
  report.set_weights_hash(100 + applied);
  report.set_has_gradient(true);
  report.set_slot(3);
  report.set_gradient_hash(200 + applied);
  report.set_has_sum(true);
  report.set_sum_rank(1);
  report.set_sum_hash(300 + applied);
  return report;
}

inline wire::CheckReport with_wrong_weights(Step applied, uint64_t flip = 1) {
  wire::CheckReport report = healthy(applied);
  report.set_weights_hash(report.weights_hash() ^ (flip << 40));
  report.set_gradient_hash(report.gradient_hash() ^ (flip << 40));  // they follow from the weights
  return report;
}

// The report of a member before a checkpoint, and wherever results may differ.
inline wire::CheckReport only_weights(Step applied, uint64_t flip = 0) {
  wire::CheckReport report;
  report.set_applied(applied);
  report.set_weights_hash((100 + applied) ^ (flip << 40));
  return report;
}

// The report of a member that is alone, and computes the slot twice.
inline wire::CheckReport of_one(Step applied, uint64_t again_flip = 0) {
  wire::CheckReport report = healthy(applied);
  report.set_has_again(true);
  report.set_again_hash(report.gradient_hash() ^ again_flip);
  return report;
}

class Checks : public ::testing::Test {
 protected:
  Reason check(World& w, ConnectionId c, const wire::CheckReport& report, Generation g = 0) {
    wire::Envelope e;
    e.set_generation(g == 0 ? w.state.source_generation : g);
    *e.mutable_check() = report;
    return w.say(c, e);
  }
  // One of four workers has no part in the check of a sum, and rank 1 adds the sum up wrong.
  Reason add_up_wrong(World& w) {
    wire::CheckReport no_part = healthy(2);
    no_part.set_has_sum(false);
    wire::CheckReport wrong = healthy(2);
    wrong.set_sum_hash(7);
    check(w, 1, no_part);
    check(w, 2, wrong);
    check(w, 3, healthy(2));
    return check(w, 4, healthy(2));
  }
  void all_agree(World& w, Step applied) {
    for (uint32_t c = 1; c < w.options.workers; ++c) {
      EXPECT_EQ(check(w, c, healthy(applied)), Reason::kCheckCounted);
    }
    EXPECT_EQ(check(w, w.options.workers, healthy(applied)), Reason::kChecked);
  }
  void all_agree_of(World& w, const std::vector<ConnectionId>& who, Step applied) {
    for (ConnectionId c : who) {
      EXPECT_EQ(check(w, c, healthy(applied)),
                c == who.back() ? Reason::kChecked : Reason::kCheckCounted);
    }
  }
  // Returns what the log says about corruption.
  static std::string words(const World& w) {
    std::string text;
    for (const EventEntry& e : w.journal.events()) {
      if (e.kind == "corruption") text += e.text;
    }
    return text;
  }
  static CheckHistory kept(World& w) { return check_history(*w.journal.load()); }
  static std::optional<Step> limit(World& w) { return newest_trusted(*w.journal.load()); }
  // The next term of the same run.
  World next_term(World& w) {
    // The term begins as if from the initial weights (term.h).
    if (limit(w)) {
      const std::vector<JournalEntry> cut = {RollbackEntry{{0, Phase::kTrain}, "", "resume"}};
      EXPECT_TRUE(w.journal.commit(cut, 0).is_ok());
    }
    Beginning b = first_term();
    b.term = w.state.term + 1;
    b.next_member = w.state.next_member;
    b.generation = w.state.last_generation;
    b.checks = kept(w);
    World next(w.options, b);
    next.journal = w.journal;
    return next;
  }
};

}  // namespace lockstep::coordinator
