// A resume on a machine that computes other bits than the checkpoint's writer.
#include "comm/run/checkpoint/numerics.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

Beginning resumed(const std::vector<std::string>& fingerprint) {
  Beginning b = second_term();
  b.base = {2, Phase::kTrain};
  b.completed = 2;
  b.base_checkpoint = "/run/checkpoints/step-0000000002-g1-m1";
  b.base_fingerprint = fingerprint;
  return b;
}

Options options_with(const std::string& numerics, const std::string& other) {
  Options options = small_options(2, 100);
  options.job.mutable_comm()->set_numerics(numerics);
  options.job.mutable_comm()->set_other_numerics(other);
  return options;
}

TEST(OtherNumerics, TheWorkerIsRefusedWithBothValuesAndTheKey) {
  World w(options_with("exact", "refuse"), resumed({"isa=avx512"}));
  EXPECT_EQ(w.join(1), Reason::kRefusedMisfit);
  const auto sent = w.sent(1);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().goodbye().exit_code(), 78u);
  const std::string said = sent.back().goodbye().message();
  for (const char* word : {"isa=avx2", "isa=avx512", "comm.other_numerics=continue"})
    EXPECT_NE(said.find(word), std::string::npos) << said;
}

TEST(OtherNumerics, WhoAcceptsThemGoesOnAndAnEventSaysSo) {
  World w(options_with("exact", "continue"), resumed({"isa=avx512"}));
  EXPECT_EQ(w.join(1), Reason::kRegistered);
  EXPECT_TRUE(w.is_durable("other_numerics"));
}

TEST(OtherNumerics, TheSameMachineAndAFastRunAreNotAsked) {
  World same(options_with("exact", "refuse"), resumed({"isa=avx2"}));
  EXPECT_EQ(same.join(1), Reason::kRegistered);
  World fast(options_with("fast", "refuse"), resumed({"isa=avx512"}));
  EXPECT_EQ(fast.join(1), Reason::kRegistered);
}

TEST(OtherNumerics, ALineThatAnEarlierVersionDidNotWriteSaysNothing) {
  World w(options_with("exact", "refuse"), resumed({"device=cpu"}));
  EXPECT_EQ(w.join(1), Reason::kRegistered);
  EXPECT_EQ(numerics_difference({"results=ab", "torch=2"}, {"torch=2"}), "");
  EXPECT_EQ(numerics_difference({"torch=2"}, {"results=ab", "torch=2"}), "");
  EXPECT_NE(numerics_difference({"results=ab", "torch=2"}, {"results=cd", "torch=2"}), "");
}

// A change of Lockstep's own arithmetic: an older checkpoint was computed without it.
TEST(OtherNumerics, ALineWhoseAbsenceHasAMeaningIsComparedWithIt) {
  const std::string decay = kDecayWithGradient;
  EXPECT_EQ(numerics_difference({decay, "torch=2"}, {decay, "torch=2"}), "");
  EXPECT_NE(numerics_difference({decay, "torch=2"}, {"torch=2"}).find("decay=all then"),
            std::string::npos);
  EXPECT_NE(numerics_difference({"torch=2"}, {decay, "torch=2"}).find("decay=all here"),
            std::string::npos);
  EXPECT_EQ(numerics_difference({decay, "torch=2"}, {}), "");  // there was nothing before
  World w(options_with("exact", "refuse"), resumed({decay, "isa=avx2"}));
  EXPECT_EQ(w.join(1), Reason::kRefusedMisfit);
}

}  // namespace
}  // namespace lockstep::coordinator
