// Tests which place is put out for wrong weights, and which only has a copy of them.
#include "tests/unit/coordinator/decide/checks.h"

namespace lockstep::coordinator {
namespace {

class PutOut : public Checks {
 protected:
  // Returns the term after one of three workers held other weights.
  World after_one_was_put_out(const Options& options) {
    World w(options);
    w.train();
    check(w, 1, healthy(2));
    check(w, 2, with_wrong_weights(2));
    EXPECT_EQ(check(w, 3, healthy(2)), Reason::kEndedTerm);
    return next_term(w);
  }
};

TEST_F(PutOut, APlaceThatWasPutOutIsNeverGivenWorkAgain) {
  World next = after_one_was_put_out(checking_options(3));
  for (ConnectionId c = 1; c <= 2; ++c) next.join(c);
  EXPECT_EQ(next.state.run, RunState::kGathering);
  EXPECT_EQ(next.join(3), Reason::kPrepared);  // without it, and without a lease of waiting for it
  ASSERT_EQ(next.state.ranks.size(), 2u);
  for (MemberId id : next.state.ranks) EXPECT_NE(next.state.members.at(id).local_rank, 1u);
}

TEST_F(PutOut, WithoutAPlaceThatWasPutOutAtLeastTheFewestWorkersAreThere) {
  Options options = checking_options(3);
  options.min_workers = 3;
  World next = after_one_was_put_out(options);
  for (ConnectionId c = 1; c <= 3; ++c) next.join(c);
  EXPECT_EQ(next.state.run, RunState::kGathering);
}

// One of the three members whose weights are compared got them from another: its vote is the
// other's.
TEST_F(PutOut, WhoGotItsWeightsFromAnotherHasNoVoteOnThem) {
  for (const bool was_before : {false, true}) {
    World w(checking_options(4));
    w.train();
    all_agree(w, 2);
    w.kill(4);
    w.promise_at(1, 3);
    w.promise_at(2, 3);
    EXPECT_EQ(w.promise_at(3, 2), Reason::kStarted);
    if (was_before) all_agree_of(w, {1, 2, 3}, 4);
    const Step step = was_before ? 6 : 4;
    check(w, 1, with_wrong_weights(step));
    check(w, 2, healthy(step));
    EXPECT_EQ(check(w, 3, with_wrong_weights(step)), Reason::kEndedTerm);
    EXPECT_EQ(kept(w).expelled, was_before ? (std::set<Place>{{"n", 1}}) : std::set<Place>{});
    EXPECT_EQ(kept(w).witnesses.size(), was_before ? 0u : 2u);
  }
}

TEST_F(PutOut, ACopyOfWrongWeightsIsNotPutOutForThem) {
  for (const bool goes_on : {false, true}) {
    Options options = checking_options(5);
    if (goes_on) options.job.mutable_train()->set_on_corruption("continue");
    World w(options);
    w.train();
    all_agree(w, 2);
    w.kill(5);
    for (ConnectionId c : {1, 2, 3}) w.promise_at(c, 3);
    EXPECT_EQ(w.promise_at(4, 2), Reason::kStarted);
    check(w, 1, with_wrong_weights(4));
    check(w, 2, healthy(4));
    check(w, 3, healthy(4));
    EXPECT_EQ(check(w, 4, with_wrong_weights(4)), Reason::kEndedTerm);
    EXPECT_EQ(kept(w).expelled, (std::set<Place>{{"n", 0}}));
  }
}

}  // namespace
}  // namespace lockstep::coordinator
