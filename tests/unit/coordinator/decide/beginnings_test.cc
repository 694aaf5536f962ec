// Workers of one script say what they began with, and which code they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/decide/open_term.h"

namespace lockstep::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::Register hashed(ConnectionId c, const std::string& code, const std::string& state) {
  wire::Register m = script(c);
  m.set_code_hash(code);
  m.set_state_hash(state);
  return m;
}

class OtherFirstValues : public OpenTerm, public ::testing::WithParamInterface<const char*> {};

TEST_P(OtherFirstValues, AreRefusedWithTheirCausesAndNotWithMachines) {
  job_.mutable_comm()->set_numerics(GetParam());
  begin(BeginMode::kFirst);
  ASSERT_EQ(w.join(1, hashed(1, "c1", "s1")), Reason::kRegistered);
  wire::Register other = hashed(2, "c1", "s2");
  other.mutable_fingerprint()->add_lines("trial=2");  // which says the same
  EXPECT_EQ(w.join(2, other), Reason::kEndedScript);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 64);
  for (const char* word : {"s1 in this run and s2 there", "lockstep.start()", "time", "a set"})
    EXPECT_THAT(w.ends[0].message, HasSubstr(word));
  for (const char* word : {"machine", "numerics"})
    EXPECT_THAT(w.ends[0].message, Not(HasSubstr(word)));
}

INSTANTIATE_TEST_SUITE_P(Numerics, OtherFirstValues, ::testing::Values("exact", "fast"));

TEST_F(OpenTerm, AWorkerOfOtherCodeIsRefusedUntilSomebodyResumesTheRun) {
  begin(BeginMode::kFirst);
  ASSERT_EQ(w.join(1, hashed(1, "c1", "s1")), Reason::kRegistered);
  ASSERT_EQ(w.join(2, hashed(2, "c1", "s1")), Reason::kEndedTerm);
  for (const BeginMode mode : {BeginMode::kNextTerm, BeginMode::kTakeOver}) {
    begin(mode);  // also if the one with other code is the first to come
    EXPECT_NE(w.join(1, hashed(1, "c2", "s1")), Reason::kRegistered);
    EXPECT_THAT(last_words(1), HasSubstr("c1 in this run and c2 there"));
    EXPECT_THAT(last_words(1), HasSubstr("resume it"));
  }
  begin(BeginMode::kResume);
  EXPECT_EQ(w.join(1, hashed(1, "c2", "s1")), Reason::kRegistered) << "it was mended";
  EXPECT_EQ(w.join(2, hashed(2, "c1", "s1")), Reason::kRefusedMisfit) << "and not for all";
}

TEST_F(OpenTerm, AResumeComparesTheBeginningsAndOlderRunsHaveNone) {
  begin(BeginMode::kFirst);
  ASSERT_EQ(w.join(1, hashed(1, "c1", "s1")), Reason::kRegistered);
  ASSERT_EQ(w.join(2, hashed(2, "c1", "s1")), Reason::kEndedTerm);
  begin(BeginMode::kResume);
  EXPECT_EQ(w.join(1, hashed(1, "c1", "s2")), Reason::kRefusedMisfit);
  EXPECT_THAT(last_words(1), HasSubstr("s1 in this run and s2 there"));
  EXPECT_EQ(w.join(2, hashed(2, "c1", "s1")), Reason::kRegistered);
}

TEST_F(OpenTerm, ARunOfAnEarlierVersionTakesTheFirstHashes) {
  resolve();  // without any
  begin(BeginMode::kResume);
  EXPECT_EQ(w.join(1, hashed(1, "c1", "s1")), Reason::kRegistered);
  EXPECT_EQ(w.join(2, hashed(2, "c1", "s2")), Reason::kRefusedMisfit);
}

TEST_F(OpenTerm, AFirstSlotThatComesOutDifferentIsNoMattersOfMachines) {
  begin(BeginMode::kFirst);
  wire::Register first = hashed(1, "c1", "s1");
  first.mutable_fingerprint()->add_lines("trial=1");
  ASSERT_EQ(w.join(1, first), Reason::kRegistered);
  wire::Register other = hashed(2, "c1", "s1");
  other.mutable_fingerprint()->add_lines("trial=2");
  EXPECT_EQ(w.join(2, other), Reason::kEndedFingerprint);
  EXPECT_THAT(w.ends[0].message, HasSubstr("trial is 1 in this run and 2 there"));
  EXPECT_THAT(w.ends[0].message, Not(HasSubstr("numerics=fast"))) << "two models as one";
}

}  // namespace
}  // namespace lockstep::coordinator
