#include "data/prefetch/sample_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "comm/base/byte_units.h"
#include "comm/run/job/job.pb.h"
#include "data/prefetch/prefetch_policy.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/file_dataset.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

wire::DataSpec spec(const std::string& reader, uint64_t mib = 1) {
  wire::DataSpec data;
  data.set_reader(reader);
  data.set_read_ahead_mb(mib);
  return data;
}

// The samples one after another, `times` over.
SampleBuffer::OrderFn in_turn(const Dataset& dataset, uint64_t times = 1) {
  return [n = uint64_t{0}, &dataset, times]() mutable -> std::optional<uint64_t> {
    if (n == times * dataset.samples()) return std::nullopt;
    return n++ % dataset.samples();
  };
}

std::string text_of(const SampleBuffer::Held& held) {
  return {reinterpret_cast<const char*>(held.bytes().data()), held.bytes().size()};
}

RC_GTEST_PROP(SampleBufferOfAny, SamplesGivesTheirBytesToManyTakersAndHoldsNoMoreThanItMay, ()) {
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<uint64_t>>(
      rc::gen::weightedOneOf<uint64_t>({{40, rc::gen::inRange<uint64_t>(1, 100'000)},
                                        {1, rc::gen::inRange<uint64_t>(kMib, kMib + 100'000)}})));
  const auto threads = *rc::gen::inRange<uint64_t>(1, 5);
  const FileDataset dataset(sizes);
  PrefetchPolicy policy(spec(*rc::gen::element<std::string>("auto", "pread", "mmap")),
                        [](const std::string&) {});
  const uint64_t all = 3 * sizes.size();
  const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset, 3), policy);
  RC_ASSERT(ahead.is_ok());
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> takers;
  for (uint64_t t = 0; t < threads; ++t)
    takers.emplace_back([&] {
      std::vector<uint8_t> own;
      for (uint64_t n = next++; n < all; n = next++) {
        const auto held = (*ahead)->take(n, own);
        if (!held.is_ok() || text_of(*held) != dataset.bytes_of(n % sizes.size())) ++wrong;
        if (policy.figures().ahead_bytes > kMib) ++wrong;
      }
    });
  for (std::thread& taker : takers) taker.join();
  RC_ASSERT(wrong == 0U);
  RC_ASSERT(policy.figures().ahead_bytes == 0U);
}

TEST(SampleBuffer, GoesNoFurtherThanItsMemoryWhileNobodyTakes) {
  const FileDataset dataset(std::vector<uint64_t>(40, 100'000));
  PrefetchPolicy policy(spec("pread"), [](const std::string&) {});
  const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset), policy);
  ASSERT_TRUE(ahead.is_ok());
  std::vector<uint8_t> own;
  for (uint64_t n = 0; n < 40; ++n) {
    const auto held = (*ahead)->take(n, own);
    ASSERT_TRUE(held.is_ok());
    EXPECT_LE(policy.figures().reads, n + kMib / 100'000 + 1);
  }
  const PrefetchFigures figures = policy.figures();
  EXPECT_EQ(figures.reads, 40U);
  EXPECT_EQ(figures.bytes, 4'000'000U);
  EXPECT_EQ(figures.reader, "pread");
}

TEST(SampleBuffer, OfASampleThatCannotBeReadOnlyItsTakerHears) {
  FileDataset dataset({10, 20, 30});
  dataset.lose(1);
  PrefetchPolicy policy(spec("pread"), [](const std::string&) {});
  const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset), policy);
  ASSERT_TRUE(ahead.is_ok());
  std::vector<uint8_t> own;
  EXPECT_TRUE((*ahead)->take(0, own).is_ok());
  EXPECT_THAT((*ahead)->take(1, own).status().message(),
              AllOf(Names("data.gone"), Says("has gone")));
  EXPECT_TRUE((*ahead)->take(2, own).is_ok());
}

TEST(SampleBuffer, ASampleLargerThanAllOfItIsReadByItsTakerAndToldToItsTakerToo) {
  FileDataset dataset({10, kMib + 1, 30, kMib + 2});
  dataset.lose(3);
  PrefetchPolicy policy(spec("pread"), [](const std::string&) {});
  const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset), policy);
  ASSERT_TRUE(ahead.is_ok());
  std::vector<uint8_t> own;
  for (uint64_t n = 0; n < 3; ++n) {
    const auto held = (*ahead)->take(n, own);
    ASSERT_TRUE(held.is_ok());
    EXPECT_EQ(text_of(*held), dataset.bytes_of(n));
  }
  EXPECT_THAT((*ahead)->take(3, own).status().message(),
              AllOf(Names("data.gone"), Says("has gone")));
}

TEST(SampleBuffer, WhoWaitsForWhatNeverComesIsWokenByItsEnd) {
  const FileDataset dataset({10});
  PrefetchPolicy policy(spec("pread"), [](const std::string&) {});
  const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset), policy);
  ASSERT_TRUE(ahead.is_ok());
  Status told;
  std::thread waiter([&] {
    std::vector<uint8_t> own;
    told = (*ahead)->take(1, own).status();
  });
  (*ahead)->stop();
  waiter.join();
  EXPECT_EQ(told.code(), Code::kAborted);
}

TEST(SampleBuffer, AutoMeasuresOnTheFirstSamplesAndSaysSoOnce) {
  const FileDataset dataset(std::vector<uint64_t>(600, 3'000));
  std::vector<std::string> notes;  // by one thread after another
  PrefetchPolicy policy(spec("auto"), [&](const std::string& note) { notes.push_back(note); });
  std::string chosen;
  for (int generation = 0; generation < 2; ++generation) {
    const auto ahead = SampleBuffer::start(*dataset, in_turn(*dataset), policy);
    ASSERT_TRUE(ahead.is_ok());
    std::vector<uint8_t> own;
    for (uint64_t n = 0; n < 600; ++n)
      ASSERT_EQ(text_of(*(*ahead)->take(n, own)), dataset.bytes_of(n));
    if (generation == 0) chosen = policy.figures().reader;
  }
  EXPECT_EQ(
      std::count_if(notes.begin(), notes.end(),
                    [](const std::string& note) { return note.starts_with("data.reader auto: "); }),
      1);
  EXPECT_THAT(notes.back(), HasSubstr("data.reader auto: " + chosen));
  EXPECT_THAT(notes.back(), HasSubstr("pread "));
  EXPECT_EQ(policy.figures().reader, chosen);
}

}  // namespace
}  // namespace lockstep::data
