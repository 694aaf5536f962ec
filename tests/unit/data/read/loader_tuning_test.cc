#include "data/loader/loader_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "comm/base/prng.h"
#include "tests/unit/data/support/loader_pace.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;

constexpr double kMs = 1e6;
constexpr double kSerial = 0.05;  // share of making a batch that threads cannot divide

// Gives times of about so many ms, each up to `noise` off.
class Noise {
 public:
  explicit Noise(uint64_t seed, double noise = 0.1) : prng_(seed), noise_(noise) {}
  uint64_t ns(double ms) {
    const double chance = static_cast<double>(prng_.below(1'000'001)) / 500'000 - 1;
    return static_cast<uint64_t>(ms * kMs * (1 + noise_ * chance));
  }
  bool once_in(uint64_t times) { return prng_.below(times) == 0; }

 private:
  Prng prng_;
  double noise_;
};

double shared(double ms, uint32_t threads, double serial = kSerial) {
  return ms * (serial + (1 - serial) / threads);
}

LoaderPace::TimeFn decoding(Noise& noise, double ms) {
  return [&noise, ms](uint32_t threads) { return noise.ns(shared(ms, threads)); };
}

LoaderPace::TimeFn always(Noise& noise, double ms) {
  return [&noise, ms](uint32_t) { return noise.ns(ms); };
}

TEST(LoaderTuning, SlowDecodingGetsAsManyThreadsAsKeepUp) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    Noise noise(seed);
    LoaderTuning tuning({.threads = 1, .ahead = 4}, 16);
    LoaderPace pace(tuning, decoding(noise, 40), always(noise, 10));
    EXPECT_LT(pace.run(), 1'200U);
    ASSERT_TRUE(tuning.is_done());
    EXPECT_EQ(tuning.result()->end, TuningEnd::kKeepsUp);
    // 4.75 threads make batches just as fast as they are used.
    EXPECT_GE(tuning.setting().threads, 5U);
    EXPECT_LE(tuning.setting().threads, 8U);
    EXPECT_LE(tuning.result()->waited, 0.01);
  }
}

TEST(LoaderTuning, ThreadsThatAreNotNeededAreGivenBack) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    Noise noise(seed);
    LoaderTuning tuning({.threads = 16, .ahead = 4}, 16);
    LoaderPace pace(tuning, decoding(noise, 40), always(noise, 30));
    EXPECT_LT(pace.run(), 700U);
    EXPECT_EQ(tuning.result()->end, TuningEnd::kKeepsUp);
    // One is too few, 1.4 are just enough, and there is to be 1.25 times as much.
    EXPECT_EQ(tuning.setting(), (LoaderSetting{.threads = 2, .ahead = 4}));
  }
}

// By the division of the work alone 3 threads would do; but where they wait for each other 3 are
// slower than that.
TEST(LoaderTuning, ThreadsThatWereMissedAreTakenAgain) {
  Noise noise(1);
  LoaderTuning tuning({.threads = 4, .ahead = 4}, 4);
  LoaderPace pace(
      tuning, [&](uint32_t threads) { return noise.ns(threads < 4 ? 12 : 5); }, always(noise, 10));
  pace.run();
  EXPECT_EQ(tuning.result()->end, TuningEnd::kKeepsUp);
  EXPECT_EQ(tuning.setting().threads, 4U);
  EXPECT_THAT(pace.seen(), testing::Contains(Field(&LoaderSetting::threads, 3U)));
}

TEST(LoaderTuning, UnevenBatchesAreMadeFurtherAhead) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    Noise noise(seed);
    LoaderTuning tuning({.threads = 1, .ahead = 4});
    // 5 ms, but one in 30 takes 60: 7 on the whole, where a batch is used in 10.
    LoaderPace pace(
        tuning, [&](uint32_t) { return noise.ns(noise.once_in(30) ? 60 : 5); }, always(noise, 10));
    pace.run();
    ASSERT_TRUE(tuning.is_done());
    EXPECT_GE(tuning.setting().ahead, 8U);
    EXPECT_LE(tuning.setting().ahead, 64U);
    EXPECT_EQ(tuning.setting().threads, 1U);
    EXPECT_LE(tuning.result()->waited, 0.02);
  }
}

// One batch in 128 takes the longer the more lie ahead of it: after all of it, it is where it was.
TEST(LoaderTuning, AheadIsNoFartherThanItHelps) {
  Noise noise(12);
  LoaderTuning tuning({.threads = 1, .ahead = 2});
  uint64_t made = 0;
  const auto make = [&](uint32_t) {
    return noise.ns(++made % 128 == 100 ? 150.0 + 10.0 * tuning.setting().ahead : 0.3);
  };
  LoaderPace pace(tuning, make, always(noise, 10));
  pace.run();
  EXPECT_EQ(tuning.result()->end, TuningEnd::kUneven);
  EXPECT_EQ(tuning.setting().ahead, 2U);
  EXPECT_EQ(pace.seen().size(), 7U);  // 2, 4, ... 64, 2
}

// Threads divide nothing of it: each number of them is tried once, and the first one stays.
TEST(LoaderTuning, WhatIsSlowWithAnyThreadsKeepsTheFewest) {
  Noise noise(4);
  LoaderTuning tuning({.threads = 2, .ahead = 4}, 16);
  LoaderPace pace(tuning, always(noise, 40), always(noise, 10));
  EXPECT_LT(pace.run(), 700U);
  EXPECT_EQ(tuning.result()->end, TuningEnd::kSlow);
  EXPECT_EQ(tuning.setting(), (LoaderSetting{.threads = 2, .ahead = 4}));
  EXPECT_THAT(pace.seen(), testing::ElementsAre(LoaderSetting{2, 4}, LoaderSetting{4, 4},
                                                LoaderSetting{3, 4}, LoaderSetting{2, 4}));
}

// 12 threads would be enough, and there are 4: the most that help are kept.
TEST(LoaderTuning, WhatIsTooSlowGetsWhatThereIs) {
  Noise noise(5);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 4);
  LoaderPace pace(tuning, decoding(noise, 80), always(noise, 10));
  pace.run();
  EXPECT_EQ(tuning.result()->end, TuningEnd::kSlow);
  EXPECT_EQ(tuning.setting(), (LoaderSetting{.threads = 4, .ahead = 4}));
  EXPECT_GT(tuning.result()->waited, 0.5);
}

// On a CPU the training and the decoding share the cores: what the loader gains the training loses.
TEST(LoaderTuning, ThreadsThatCostTheTrainingMoreAreNotKept) {
  Noise noise(6);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 8);
  LoaderPace pace(tuning, decoding(noise, 12),
                  [&](uint32_t threads) { return noise.ns(10.0 + 4.0 * (threads - 1)); });
  pace.run();
  EXPECT_EQ(tuning.setting().threads, 1U);
}

TEST(LoaderTuning, ThreadsThatTheJobSaysStay) {
  Noise noise(7);
  for (const double ms : {1.0, 400.0}) {
    LoaderTuning tuning({.threads = 3, .ahead = 4});
    LoaderPace pace(tuning, decoding(noise, ms), always(noise, 10));
    pace.run();
    ASSERT_TRUE(tuning.is_done());
    EXPECT_THAT(pace.seen(), Each(Field(&LoaderSetting::threads, 3U)));
    EXPECT_THAT(tuning.result()->text(), testing::Not(HasSubstr("thread")));
  }
}

TEST(LoaderTuning, AnEvaluationSaysNothingOfTheLoader) {
  Noise noise(8);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 8);
  uint64_t used = 0;
  LoaderPace pace(tuning, decoding(noise, 16), [&](uint32_t) {
    return noise.ns(++used == 50 ? 300'000 : 10);  // minutes, in the first window
  });
  pace.run();
  EXPECT_GT(tuning.setting().threads, 1U);  // with it the training had waited 0.3 % of the time
}

TEST(LoaderTuning, BatchesOfMicrosecondsAreMeasuredForLongEnough) {
  Noise noise(9);
  LoaderTuning tuning({.threads = 1, .ahead = 4});
  LoaderPace pace(tuning, always(noise, 0.04), always(noise, 0.08));
  const uint64_t taken = pace.run();
  EXPECT_GE(taken, 3'000U);
  EXPECT_LE(taken, limits::kTuningWindowBatches + 100);
  EXPECT_EQ(tuning.result()->end, TuningEnd::kKeepsUp);
}

TEST(LoaderTuning, AnotherLoaderGoesOnWhereTheLastOneWas) {
  Noise noise(10);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 16);
  LoaderPace first(tuning, decoding(noise, 40), always(noise, 10));
  while (tuning.setting().threads < 4) first.run(1);  // it tries them, and ends
  LoaderPace second(tuning, decoding(noise, 40), always(noise, 10));
  EXPECT_EQ(second.seen().front().threads, 2U);  // what was kept
  second.run();
  ASSERT_TRUE(tuning.is_done());
  const LoaderSetting found = tuning.setting();
  EXPECT_GE(found.threads, 5U);
  LoaderPace third(tuning, decoding(noise, 400), always(noise, 10));
  EXPECT_EQ(third.run(), 0U);  // what is found stays
  EXPECT_EQ(tuning.setting(), found);
}

TEST(LoaderTuning, WhatTheMachineDoesNotHaveIsNotAskedForAgain) {
  Noise noise(11);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 16);
  LoaderPace pace(tuning, decoding(noise, 80), always(noise, 10));
  std::vector<LoaderSetting> asked;
  while (!tuning.is_done()) {
    pace.run(1);
    if (tuning.setting().threads <= 2) continue;
    asked.push_back(tuning.setting());
    tuning.refused({2, 4});
    EXPECT_EQ(tuning.setting().threads, 2U);
  }
  EXPECT_EQ(asked, (std::vector<LoaderSetting>{{4, 4}}));
  EXPECT_EQ(tuning.setting().threads, 2U);
}

// The next generation's loader has less than the one before: nothing is asked for again and again.
TEST(LoaderTuning, WhatWasKeptIsGivenUpWhereItIsNotThereAnyMore) {
  Noise noise(11);
  LoaderTuning tuning({.threads = 1, .ahead = 4}, 16);
  LoaderPace pace(tuning, decoding(noise, 80), always(noise, 10));
  while (tuning.setting().threads < 8 && !tuning.is_done()) pace.run(1);
  ASSERT_FALSE(tuning.is_done());
  tuning.begin();  // of the trial, which was not judged
  ASSERT_EQ(tuning.setting().threads, 4U);
  tuning.refused({3, 4});
  EXPECT_EQ(tuning.setting(), (LoaderSetting{3, 4}));
  while (!tuning.is_done()) {
    pace.run(1);
    EXPECT_LE(tuning.setting().threads, 3U);
  }
  EXPECT_EQ(tuning.setting(), (LoaderSetting{3, 4}));
}

// For any measurements, tuning stays within its bounds, tries nothing twice, and ends.
RC_GTEST_PROP(LoaderTuning, EndsAndNeverGoesToAndFro, ()) {
  const auto first = *rc::gen::inRange<uint32_t>(1, 17);
  const auto ahead = *rc::gen::inRange<uint32_t>(1, 100);
  const auto most = *rc::gen::element<uint32_t>(0, first, 16);
  const auto make_ms = static_cast<double>(*rc::gen::inRange(1, 200)) / 5;
  const auto use_ms = static_cast<double>(*rc::gen::inRange(1, 200)) / 5;
  const auto serial = static_cast<double>(*rc::gen::inRange(0, 101)) / 100;
  const auto uneven = *rc::gen::inRange<uint64_t>(1, 200);
  const auto stolen = static_cast<double>(*rc::gen::inRange(0, 30)) / 100;
  Noise noise(*rc::gen::arbitrary<uint64_t>(), 0.5);
  LoaderTuning tuning({first, ahead}, most);
  LoaderPace pace(
      tuning,
      [&](uint32_t threads) {
        return noise.ns(shared(make_ms, threads, serial) * (noise.once_in(uneven) ? 8 : 1));
      },
      [&](uint32_t threads) { return noise.ns(use_ms * (1 + stolen * (threads - 1))); });
  RC_ASSERT(pace.run() < LoaderPace::kBound);
  RC_ASSERT(tuning.is_done());
  std::set<std::pair<uint32_t, uint32_t>> tried;
  for (size_t i = 0; i < pace.seen().size(); ++i) {
    const LoaderSetting setting = pace.seen()[i];
    RC_ASSERT(setting.threads >= 1U && setting.threads <= std::max(first, most));
    RC_ASSERT(setting.ahead >= ahead && setting.ahead <= std::max(64U, ahead));
    if (most == 0) RC_ASSERT(setting.threads == first);
    // It goes back once, at the end.
    RC_ASSERT(tried.emplace(setting.threads, setting.ahead).second || i + 1 == pace.seen().size());
  }
  RC_ASSERT(tuning.setting() == pace.seen().back());
}

TEST(LoaderTuning, SaysWhatItCameTo) {
  const TuningResult found{TuningEnd::kKeepsUp, {3, 8}, 0.0042, true};
  EXPECT_EQ(
      found.text(),
      "data.tune: 3 threads, 8 batches ahead: the training waited 0.4 % of its time for data");
  EXPECT_THAT((TuningResult{TuningEnd::kSlow, {1, 4}, 0.5, true}).text(),
              AllOf(HasSubstr("1 thread, 4 batches"), HasSubstr("waited 50.0 %"),
                    HasSubstr("lockstep doctor")));
  EXPECT_THAT((TuningResult{TuningEnd::kUneven, {1, 64}, 0.1, false}).text(),
              AllOf(HasSubstr("data.tune: 64 batches"), HasSubstr("much longer than others")));
}

}  // namespace
}  // namespace lockstep::data
