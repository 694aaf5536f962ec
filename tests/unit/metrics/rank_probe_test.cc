// Tests which ranks have series of their own, and what is said of all of them.
#include "metrics/probes/rank_probe.h"

#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "tests/unit/metrics/exposition.h"

namespace lockstep::test {
namespace {

// Rank i needs i + 1 ms for a slot, waits for data the less the higher it is, and was heard of now.
std::vector<RankSample> ranks(uint32_t count) {
  std::vector<RankSample> all;
  for (uint32_t i = 0; i < count; ++i) {
    all.push_back({.rank = i,
                   .node = "n" + std::to_string(i / 8),
                   .local_rank = i % 8,
                   .ten_seconds = {},
                   .minute = {.slot_seconds = (i + 1) / 1e3, .data_wait_ratio = 1.0 / (i + 1)},
                   .silence_seconds = 0});
  }
  return all;
}

class RankProbeTest : public testing::Test {
 protected:
  std::map<std::string, double> shown(const std::string& family) {
    const ExposedFamilies all = parse_exposition(families_.text());
    return all.contains(family) ? all.at(family).series : std::map<std::string, double>{};
  }
  double stat(const std::string& name, const std::string& which) {
    return shown(name).at(name + "{run=\"r\",stat=\"" + which + "\"}");
  }

  Families families_{{{"run", "r"}}};
  RankProbe probe_{families_};
};

TEST_F(RankProbeTest, EachOfAFewHasItsOwnSeries) {
  probe_.show(ranks(limits::kRanksShown));
  const auto slots = shown("lockstep_rank_slot_seconds");
  EXPECT_EQ(slots.size(), limits::kRanksShown);
  EXPECT_EQ(slots.at(R"(lockstep_rank_slot_seconds{run="r",local_rank="1",node="n1",rank="9"})"),
            0.010);
  EXPECT_EQ(shown("lockstep_rank_data_wait_ratio").size(), limits::kRanksShown);
  EXPECT_EQ(shown("lockstep_rank_silence_seconds").size(), limits::kRanksShown);
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "min"), 0.001);
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "median"), 0.256);
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "max"), 0.512);
}

TEST_F(RankProbeTest, OfManyTheWorstOfEachFamilyAreShown) {
  const uint32_t count = limits::kRanksShown + 1;
  probe_.show(ranks(count));
  const auto slots = shown("lockstep_rank_slot_seconds");
  EXPECT_EQ(slots.size(), limits::kWorstRanksShown);
  for (const auto& [series, seconds] : slots)
    EXPECT_GT(seconds, (count - limits::kWorstRanksShown) / 1e3) << series;
  const auto waits = shown("lockstep_rank_data_wait_ratio");
  EXPECT_EQ(waits.size(), limits::kWorstRanksShown);
  for (const auto& [series, ratio] : waits)
    EXPECT_GE(ratio, 1.0 / limits::kWorstRanksShown) << series;
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "min"), 0.001);
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "median"), 0.257);
  EXPECT_EQ(stat("lockstep_job_ranks_slot_seconds", "max"), 0.513);
}

TEST_F(RankProbeTest, WhoIsNoRankAnyMoreHasNoSeries) {
  probe_.show(ranks(3));
  std::vector<RankSample> moved = ranks(2);
  moved[1].node = "elsewhere";
  probe_.show(moved);
  const auto slots = shown("lockstep_rank_slot_seconds");
  EXPECT_EQ(slots.size(), 2u);
  EXPECT_TRUE(slots.contains(
      R"(lockstep_rank_slot_seconds{run="r",local_rank="1",node="elsewhere",rank="1"})"));
  probe_.show({});
  for (const auto& [name, family] : parse_exposition(families_.text()))
    EXPECT_TRUE(family.series.empty()) << name;
}

TEST_F(RankProbeTest, BeforeItsFirstStepARankHasOnlySilence) {
  probe_.show({{0, "n", 0, {}, {}, 2.5}});
  EXPECT_TRUE(shown("lockstep_rank_slot_seconds").empty());
  EXPECT_TRUE(shown("lockstep_job_ranks_slot_seconds").empty());
  EXPECT_EQ(stat("lockstep_job_ranks_silence_seconds", "max"), 2.5);
}

TEST_F(RankProbeTest, ANameThatIsNoTextDoesNoHarm) {
  probe_.show({{0, "n\xff\n", 0, {}, {}, 0}});
  EXPECT_TRUE(shown("lockstep_rank_silence_seconds")
                  .contains(R"(lockstep_rank_silence_seconds{run="r",local_rank="0",node="n??",)"
                            R"(rank="0"})"));
}

}  // namespace
}  // namespace lockstep::test
