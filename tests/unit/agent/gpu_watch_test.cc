#include "deploy/agent/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kWatchedGpus[] = "devices 2\nwhole_uuids 1\n";
constexpr char kSecondFailed[] = "remap_failed.1 1\n";

std::string uuid(uint32_t number) {
  return std::string(31, '0') + std::to_string(number);
}

// NVML lists its GPUs when it starts, which is when the watch is made.
struct TwoGpus : test::FakeGpus {
  TwoGpus() { say(kWatchedGpus); }
};

class GpuWatchTest : public testing::Test {
 protected:
  // Looks while the stand-in says so.
  void look(const std::string& lines) {
    gpus_.say(kWatchedGpus + lines);
    watch_.look(places_, limits::kGpuFirstLookMs);
  }
  std::vector<Fitness> fitness() {
    std::vector<Fitness> all;
    for (const auto& place : places_) all.push_back(watch_.verdict_of(place).fitness);
    return all;
  }

  TwoGpus gpus_;
  std::map<uint32_t, std::string> of_number_ = {{0, uuid(0)}, {1, uuid(1)}};
  GpuWatch watch_{FAKE_NVML_LIBRARY, [this](uint32_t number) { return of_number_[number]; }, true};
  std::vector<WorkerSlots::GpuPlace> places_ = {{0, 0, 0, "", 0}, {1, 1, 1, "", 0}};
};

TEST_F(GpuWatchTest, APlacesGpuIsTheOneThatItsWorkerHasToldAndElseThatOfItsNumber) {
  look(kSecondFailed);
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kOk, Fitness::kLeave));
  places_[1].uuid = uuid(0);
  places_[0].uuid = uuid(1);
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kLeave, Fitness::kOk));
}

TEST_F(GpuWatchTest, NumbersThatMoveWhenAGpuIsLostChangeNothing) {
  look("");
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kOk, Fitness::kOk));
  of_number_ = {{0, uuid(1)}, {1, uuid(1)}};
  look("error.all.0 15\n");
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kLeave, Fitness::kOk));
}

TEST_F(GpuWatchTest, AGpuThatNvmlDoesNotListIsNeverUnfit) {
  places_[0].uuid = std::string(32, 'f');  // a slice (MIG)
  of_number_[1] = "";                      // nor does the driver say
  look("remap_failed 1\n");
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kOk, Fitness::kOk));
}

TEST_F(GpuWatchTest, ADriverThatHangsChangesNothing) {
  look(kSecondFailed);
  gpus_.say(std::string(kWatchedGpus) + "hang 1\nremap_failed 1\n");
  for (uint32_t i = 0; i < 2 * limits::kGpuCleanLooks; ++i) watch_.look(places_, 1);
  EXPECT_THAT(fitness(), ElementsAre(Fitness::kOk, Fitness::kLeave));
  gpus_.say(kWatchedGpus);
}

// The verdicts name GPUs as the metrics do, also a GPU that no place has.
TEST_F(GpuWatchTest, VerdictsAreByNvmlsUuidAndThereAfterTheFirstLook) {
  EXPECT_THAT(watch_.verdicts(), IsEmpty());
  places_.pop_back();
  look(kSecondFailed);
  EXPECT_THAT(watch_.verdicts(),
              ElementsAre(Pair("GPU-00000000-0000-0000-0000-000000000000", Fitness::kOk),
                          Pair("GPU-00000000-0000-0000-0000-000000000001", Fitness::kLeave)));
}

TEST_F(GpuWatchTest, NewsAreToldOnceAndAPlaceThatIsGoneIsOk) {
  look(kSecondFailed);
  const auto news = watch_.news(places_);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].place.local_rank, 1u);
  EXPECT_EQ(news[0].before, GpuVerdict());
  EXPECT_EQ(news[0].now.fitness, Fitness::kLeave);
  EXPECT_THAT(watch_.news(places_), IsEmpty());
  places_.pop_back();
  const auto gone = watch_.news(places_);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].now, GpuVerdict());
  EXPECT_THAT(watch_.news(places_), IsEmpty());
}

TEST_F(GpuWatchTest, AnotherProcessIsAStrangerUnlessTheListHasPidsOfAnotherNamespace) {
  places_[0].uuid = uuid(0);
  places_[0].pid = 4711;
  look("process.0 4711\n");
  EXPECT_EQ(fitness()[0], Fitness::kOk);
  look("process.0 99\n");  // its own worker is not in the list
  EXPECT_EQ(fitness()[0], Fitness::kOk);
  places_[0].pid = 0;
  look("process.0 99\n");
  EXPECT_EQ(fitness()[0], Fitness::kWatch);
  EXPECT_THAT(watch_.verdict_of(places_[0]).reason, HasSubstr("pid 99"));
}

}  // namespace
}  // namespace lockstep
