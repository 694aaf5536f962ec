// No majority says who is right: the step is computed again, and both attempts together name who
// was wrong. And what follows where the run is to go on with what it has.
#include "tests/support/fails_with.h"
#include "tests/unit/coordinator/decide/checks.h"

namespace lockstep::coordinator {
namespace {

const Place kFirst{"n", 0};
const Place kSecond{"n", 1};

class Witnesses : public Checks {
 protected:
  // All say it, by connection; gives what follows the last one.
  Reason all(World& w, const std::vector<wire::CheckReport>& reports) {
    Reason reason = Reason::kNothingDue;
    for (size_t i = 0; i < reports.size(); ++i) reason = check(w, i + 1, reports[i]);
    return reason;
  }
  // The term in which they differed so at step 4, and the next one, in which it comes to it again.
  World after(const std::vector<wire::CheckReport>& first) {
    World w(checking_options(static_cast<uint32_t>(first.size())));
    w.train();
    all_agree(w, 2);
    EXPECT_EQ(all(w, first), Reason::kEndedTerm);
    World again = next_term(w);
    again.train();
    return again;
  }
  static World going_on(uint32_t workers) {
    Options options = checking_options(workers);
    options.job.mutable_train()->set_on_corruption("continue");
    World w(options);
    w.train();
    return w;
  }
};

TEST_F(Witnesses, WhatEveryoneSaidIsKeptWhenNobodyCanTell) {
  World again = after({healthy(4), with_wrong_weights(4)});
  const CheckHistory history = kept(again);
  ASSERT_EQ(history.witnesses.size(), 2u);
  EXPECT_EQ(history.witnesses[0].step, 4u);
  EXPECT_EQ(history.witnesses[0].subject, CheckSubject::kWeights);
  EXPECT_NE(history.witnesses[0].hash, history.witnesses[1].hash);
  EXPECT_FALSE(history.is_open);  // the lineage was cut
}

TEST_F(Witnesses, WhoDifferedOnlyThenIsPutOutAndTheOtherGoesOnAtOnce) {
  World w = after({healthy(4), with_wrong_weights(4)});
  EXPECT_EQ(all(w, {healthy(4), healthy(4)}), Reason::kRegrouped);
  EXPECT_EQ(w.state.checks.expelled, (std::set<Place>{kSecond}));
  EXPECT_TRUE(w.term_ends.empty());
  EXPECT_FALSE(limit(w).has_value());  // nothing to go back from, for any later process either
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{kSecond}));
  EXPECT_EQ(kept(w).agreed, 4u);
  EXPECT_EQ(w.promise_at(1, 4), Reason::kStarted);
  EXPECT_EQ(w.state.ranks.size(), 1u);
  EXPECT_EQ(w.state.members.at(w.state.ranks[0]).local_rank, 0u);
  EXPECT_THAT(words(w), AllOf(Names("local rank 1 on node n"), Says("weights")));
}

TEST_F(Witnesses, AGradientThatWasWrongThenNamesItsWorkerToo) {
  wire::CheckReport wrong = healthy(4);
  wrong.set_gradient_hash(7);
  World w = after({wrong, healthy(4)});
  EXPECT_EQ(all(w, {healthy(4), healthy(4)}), Reason::kRegrouped);
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{kFirst}));
  EXPECT_THAT(words(w), AllOf(Names("local rank 0 on node n"), Says("gradient")));
}

TEST_F(Witnesses, WhoIsWrongBothTimesIsOutvotedByTheOneWhoSaidTheSameTwice) {
  World w = after({healthy(4), with_wrong_weights(4, 1)});
  EXPECT_EQ(all(w, {healthy(4), with_wrong_weights(4, 2)}), Reason::kEndedTerm);
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{kSecond}));
  EXPECT_TRUE(kept(w).is_open);  // this attempt has to be undone
  EXPECT_THAT(words(w), Says("2 results", "both attempts"));
  EXPECT_TRUE(w.ends.empty());
}

TEST_F(Witnesses, WhenNoValueComesTwiceTheRunEnds) {
  World w = after({healthy(4), with_wrong_weights(4, 1)});
  EXPECT_EQ(all(w, {with_wrong_weights(4, 2), with_wrong_weights(4, 3)}), Reason::kEndedCorruption);
  EXPECT_TRUE(kept(w).expelled.empty());
  EXPECT_EQ(w.ends.at(0).exit_code, 70);
}

TEST_F(Witnesses, TwoValuesThatComeTwiceEachEndTheRun) {
  World w = after({healthy(4), with_wrong_weights(4, 1)});
  EXPECT_EQ(all(w, {healthy(4), with_wrong_weights(4, 1)}), Reason::kEndedCorruption);
  EXPECT_TRUE(kept(w).expelled.empty());
}

TEST_F(Witnesses, OfThreeThatAllDifferedThoseGoWhoDidNotSayWhatAllSayNow) {
  World w = after({with_wrong_weights(4, 1), healthy(4), with_wrong_weights(4, 2)});
  EXPECT_EQ(all(w, {healthy(4), healthy(4), healthy(4)}), Reason::kRegrouped);
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{kFirst, {"n", 2}}));
}

TEST_F(Witnesses, AMajorityNowNamesWhoWasWrongThenAsWell) {
  World w = after({with_wrong_weights(4, 1), healthy(4), with_wrong_weights(4, 2)});
  EXPECT_EQ(all(w, {healthy(4), healthy(4), with_wrong_weights(4, 3)}), Reason::kEndedTerm);
  EXPECT_EQ(kept(w).expelled, (std::set<Place>{kFirst, {"n", 2}}));
  EXPECT_THAT(words(w), AllOf(Names("local rank 0 on node n"), Says("attempt before")));
}

TEST_F(Witnesses, WhereNobodyHadSaidWhatAllSayNowNobodyIsBlamed) {
  World w = after({with_wrong_weights(4, 1), with_wrong_weights(4, 2)});
  EXPECT_EQ(all(w, {healthy(4), healthy(4)}), Reason::kChecked);
  EXPECT_TRUE(kept(w).expelled.empty());
  EXPECT_EQ(kept(w).agreed, 4u);
  EXPECT_THAT(words(w), AllOf(Names("step 4"), Says("spread")));
}

TEST_F(Witnesses, AnotherStepsAgreementBlamesNobody) {
  World w = after({healthy(4), with_wrong_weights(4)});
  EXPECT_EQ(all(w, {healthy(2), healthy(2)}), Reason::kChecked);
  EXPECT_EQ(all(w, {healthy(6), healthy(6)}), Reason::kChecked);
  EXPECT_TRUE(kept(w).expelled.empty());
}

TEST_F(Witnesses, ByPolicyOnlyTheOutvotedWorkerGoesAndTheLineageIsTainted) {
  World w = going_on(3);
  all_agree(w, 2);
  EXPECT_EQ(all(w, {healthy(4), with_wrong_weights(4), healthy(4)}), Reason::kRegrouped);
  EXPECT_TRUE(w.term_ends.empty());
  EXPECT_FALSE(limit(w).has_value());
  EXPECT_EQ(kept(w).tainted, 3u);
  EXPECT_EQ(w.promise_at(1, 4), Reason::kPromised);
  EXPECT_EQ(w.promise_at(3, 4), Reason::kStarted);
  EXPECT_EQ(w.state.ranks.size(), 2u);
  EXPECT_THAT(words(w), Names("train.on_corruption", "step 3"));
  all_agree_of(w, {1, 3}, 6);
  EXPECT_EQ(kept(w).tainted, 3u);
}

TEST_F(Witnesses, WhatTheOutvotedWorkerWroteSinceTheLastAgreementDoesNotCount) {
  World w = going_on(3);
  all_agree(w, 2);
  w.checkpoint(1, 2);
  for (ConnectionId c = 1; c <= 3; ++c) check(w, c, only_weights(3));
  w.checkpoint(1, 3);
  ASSERT_EQ(w.state.checkpoints.size(), 2u);
  EXPECT_EQ(all(w, {with_wrong_weights(4), healthy(4), healthy(4)}), Reason::kRegrouped);
  ASSERT_EQ(w.state.checkpoints.size(), 1u);
  EXPECT_EQ(w.state.checkpoints[0].step, 2u);
  const JournalContents contents = *w.journal.load();
  EXPECT_EQ(contents.checkpoints.at(1).state, CheckpointState::kRolledBack);
  EXPECT_TRUE(wrote_wrong(contents, 1, 3));  // also one that no member had reported yet
  EXPECT_FALSE(wrote_wrong(contents, 1, 2));
  EXPECT_FALSE(wrote_wrong(contents, 2, 3));
}

TEST_F(Witnesses, WhatOneThatWasPutOutHadSaidOfLaterStepsCountsNoMore) {
  World w = going_on(3);
  check(w, 2, with_wrong_weights(4));
  check(w, 1, healthy(4));
  EXPECT_EQ(all(w, {healthy(2), with_wrong_weights(2), healthy(2)}), Reason::kRegrouped);
  const Generation first = w.state.source_generation;
  EXPECT_EQ(check(w, 3, healthy(4), first), Reason::kChecked);
  EXPECT_EQ(kept(w).agreed, 4u);
}

TEST_F(Witnesses, TwoThatDifferGoBackEvenWhereTheRunIsToGoOn) {
  World w = going_on(2);
  EXPECT_EQ(all(w, {healthy(2), with_wrong_weights(2)}), Reason::kEndedTerm);
  EXPECT_EQ(limit(w), 0u);
}

}  // namespace
}  // namespace lockstep::coordinator
