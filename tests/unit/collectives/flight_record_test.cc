// The flight record: which operations it remembers, and what a reader sees meanwhile.
#include "comm/collectives/flight_record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

class SetClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return ms * 1'000'000; }
  int64_t wall_ms() const override { return ms; }
  int64_t ms = 1;
};

TEST(FlightRecord, KeepsTheNewestOperationsInTheirOrder) {
  const SetClock clock;
  FlightRecord record(clock);
  EXPECT_TRUE(record.newest(10).empty());
  for (uint32_t i = 1; i <= 3 * limits::kFlightLines; ++i)
    record.end(record.queue(FlightOperation::kSum, {1, i, i % 7}), true);
  const auto lines = record.newest(limits::kFlightLines + 50);
  ASSERT_EQ(lines.size(), limits::kFlightLines);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].place.step, 2 * limits::kFlightLines + i + 1);
    EXPECT_EQ(lines[i].state, FlightState::kDone);
  }
  EXPECT_EQ(record.newest(2).front().place.step, 3 * limits::kFlightLines - 1);
}

TEST(FlightRecord, NotesEachStateWithItsTime) {
  SetClock clock;
  FlightRecord record(clock);
  const uint64_t number = record.queue(FlightOperation::kSum, {1, 5, 2});
  clock.ms = 4;
  record.run(number);
  EXPECT_EQ(record.newest(1)[0].state, FlightState::kRunning);
  clock.ms = 9;
  record.end(number, false);
  const FlightLine line = record.newest(1)[0];
  EXPECT_EQ(line.state, FlightState::kFailed);
  EXPECT_EQ(line.queued_ns, 1'000'000);
  EXPECT_EQ(line.running_ns, 4'000'000);
  EXPECT_EQ(line.ended_ns, 9'000'000);
}

TEST(FlightRecord, AnOperationThatTheRingHasForgottenChangesNoOther) {
  const SetClock clock;
  FlightRecord record(clock);
  const uint64_t old = record.queue(FlightOperation::kSum, {1, 0, 0});
  for (size_t i = 0; i < limits::kFlightLines; ++i)
    (void)record.queue(FlightOperation::kBarrier, {1, 1, 0});
  record.end(old, false);
  record.end(0, false);
  for (const FlightLine& line : record.newest(limits::kFlightLines)) {
    EXPECT_EQ(line.operation, FlightOperation::kBarrier);
    EXPECT_EQ(line.state, FlightState::kQueued);
  }
}

TEST(FlightRecord, StandsStillSinceTheLastChangeWhileAnOperationOfThisGenerationIsOpen) {
  SetClock clock;
  FlightRecord record(clock);
  (void)record.queue(FlightOperation::kSum, {1, 5, 0});  // was dropped when the generation broke
  record.begin_generation({.generation = 2, .rank = 0, .world = 3});
  clock.ms = 50;
  EXPECT_EQ(record.stands_still_ms(), 0);
  {
    Flight flight(&record, FlightOperation::kSum, {2, 5, 0});
    clock.ms = 90;
    EXPECT_EQ(record.stands_still_ms(), 40);
    record.end(record.queue(FlightOperation::kGather, {2, 5, 0}), true);
    clock.ms = 91;
    EXPECT_EQ(record.stands_still_ms(), 1);
  }
  EXPECT_EQ(record.stands_still_ms(), 0);
  EXPECT_EQ(record.newest(2).front().state, FlightState::kFailed) << "nobody said how it ended";
}

// Every line that a reader gets is one that was written, whole.
TEST(FlightRecord, AReaderSeesNoMixtureOfTwoOperations) {
  const SetClock clock;
  FlightRecord record(clock);
  std::atomic<bool> is_over{false};
  const auto write = [&](uint32_t of) {
    for (uint32_t i = 0; i < 20'000; ++i) {
      const uint64_t number =
          record.queue(FlightOperation::kSum, {of, uint64_t{i} * 1'000 + of, i});
      record.run(number);
      record.end(number, true);
    }
  };
  std::thread first(write, 1), second(write, 2);
  std::thread reader([&] {
    do {
      for (const FlightLine& line : record.newest(limits::kFlightLines))
        ASSERT_EQ(line.place.step, uint64_t{line.place.bucket} * 1'000 + line.place.generation);
    } while (!is_over);
  });
  first.join();
  second.join();
  is_over = true;
  reader.join();
}

}  // namespace
}  // namespace lockstep
