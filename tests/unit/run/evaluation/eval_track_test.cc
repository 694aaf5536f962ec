#include "comm/run/evaluation/eval_track.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "comm/wire/control.pb.h"

namespace lockstep::data {
namespace {

EvalMark at(Step step, double loss, uint64_t correct) {
  return {step, loss, correct, 100};
}

EvalTrack track_through(const std::vector<EvalMark>& marks, BestBy by) {
  EvalTrack track;
  for (const EvalMark& mark : marks) track.add(mark, by);
  return track;
}

const std::vector<EvalMark> kRun = {at(1, 3, 10), at(2, 2, 30), at(3, 2, 30), at(4, 1.5, 20),
                                    at(5, 1.7, 29)};

TEST(EvalTrack, TheBestHasTheLeastLossOrTheLargestAccuracyAndOfEqualOnesIsTheFirst) {
  EXPECT_EQ(track_through(kRun, BestBy::kLoss).best.step, 4u);
  EXPECT_EQ(track_through(kRun, BestBy::kLoss).since, 1u);
  EXPECT_EQ(track_through(kRun, BestBy::kAccuracy).best.step, 2u);
  EXPECT_EQ(track_through(kRun, BestBy::kAccuracy).since, 3u);
  EXPECT_EQ(track_through(kRun, BestBy::kLoss).last, kRun.back());
  const EvalTrack equal = track_through({at(1, 2, 30), at(2, 2, 30)}, BestBy::kLoss);
  EXPECT_EQ(equal.best.step, 1u);
  EXPECT_EQ(equal.since, 1u);
}

TEST(EvalTrack, AnEvaluationThatIsMadeAgainCountsOnce) {
  EvalTrack track = track_through(kRun, BestBy::kLoss);
  const EvalTrack before = track;
  track.add(kRun.back(), BestBy::kLoss);
  track.add(kRun.front(), BestBy::kLoss);
  EXPECT_EQ(track, before);
}

TEST(EvalTrack, ALossThatIsNoNumberIsNeverTheBest) {
  for (const BestBy by : {BestBy::kLoss, BestBy::kAccuracy}) {
    EvalTrack track;
    track.add(at(1, std::nan(""), 99), by);
    EXPECT_EQ(track.best.step, 0u);
    EXPECT_EQ(track.since, 1u);
    track.add(at(2, 9, 1), by);
    EXPECT_EQ(track.best.step, 2u);
    track.add(at(3, INFINITY, 99), by);
    EXPECT_EQ(track.best.step, 2u);
  }
}

TEST(EvalTrack, PatienceEndsAfterSoManyThatAreNoBetter) {
  const EvalTrack track = track_through(kRun, BestBy::kAccuracy);
  EXPECT_TRUE(track.is_over(3));
  EXPECT_FALSE(track.is_over(4));
  EXPECT_FALSE(track.is_over(0));  // never
}

TEST(EvalTrack, TravelsInAMessage) {
  EvalTrack track = track_through(kRun, BestBy::kLoss);
  track.kept = kRun[1];
  wire::EvalTrack message;
  put_track(track, &message);
  EXPECT_EQ(track_of(message), track);
  EXPECT_EQ(track_of(wire::EvalTrack()), EvalTrack());
}

TEST(EvalTrack, AJobFromBeforeTheKeyKeepsNoBest) {
  EXPECT_FALSE(keeps_best(""));
  EXPECT_FALSE(keeps_best("none"));
  EXPECT_TRUE(keeps_best("accuracy"));
  EXPECT_EQ(best_by("accuracy"), BestBy::kAccuracy);
  EXPECT_EQ(best_by("none"), BestBy::kLoss);
}

}  // namespace
}  // namespace lockstep::data
