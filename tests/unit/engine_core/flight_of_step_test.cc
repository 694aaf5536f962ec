// Tests what the flight record shows of the sums of a step.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/collectives/flight_record.h"
#include "comm/collectives/forwarding.h"
#include "tests/unit/engine_core/reducer_world.h"

namespace lockstep {
namespace {

using testing::SeparateSums;
using testing::World;

std::vector<std::string> lines_of(const FlightRecord& record) {
  std::vector<std::string> lines;
  for (const FlightLine& line : record.newest(limits::kFlightLines))
    lines.push_back(std::string(name_of(line.operation)) + " " + std::to_string(line.place.step) +
                    "/" + std::to_string(line.place.bucket) + " " +
                    std::string(name_of(line.state)));
  return lines;
}

// Notes what the flight record shows while the host waits for the device.
class LookingWait final : public Forwarding<DeviceCollective, Collective> {
 public:
  LookingWait(std::unique_ptr<Collective> of, const FlightRecord& record, bool is_ok)
      : Forwarding(std::move(of)), record_(record), is_ok_(is_ok) {}
  Status begin_step(const Tag&, const StepMerge&) override { return Status::ok(); }
  Status all_reduce(const Tag&, const ElementRange&) override { return Status::ok(); }
  Result<uint64_t> wait_for_sums() override {
    seen = lines_of(record_);
    if (!is_ok_) return Status(Code::kAborted, "closed");
    return uint64_t{7};
  }
  std::vector<std::string> seen;

 private:
  const FlightRecord& record_;
  const bool is_ok_;
};

// A person sees which rank did not come to which bucket.
TEST(FlightOfAStep, ItsRecordShowsTheBucketInWhichARankWaitsForItsPeer) {
  World world({{0, 1}, {1, 2}}, 2, 256);
  const StepMerge merge = make_step_merge(world.runs, 2, {true, true});
  const auto buckets = static_cast<uint32_t>(world.bounds.size() - 1);
  ASSERT_GE(buckets, 3u);
  const SystemClock clock;
  FlightRecord record(clock);
  std::atomic<uint32_t> progress{0};
  StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                      progress);
  reducer.note_in(&record);
  std::thread training([&] { (void)world.step(reducer, 0, 6, merge, false); });
  std::vector<std::string> expected = {"sum 6/0 running"};
  for (uint32_t b = 1; b + 1 < buckets; ++b)
    expected.push_back("sum 6/" + std::to_string(b) + " queued");
  while (lines_of(record) != expected) std::this_thread::yield();  // its peer never comes
  world.collectives[1]->abort();
  training.join();
  EXPECT_EQ(lines_of(record).front(), "sum 6/0 failed");
}

TEST(FlightOfAStep, ItsRecordHasEverySumOfAStepThatWentWell) {
  World world({{0, 2}}, 2, 256);
  const StepMerge merge = make_step_merge(world.runs, 2, {true, true});
  const SystemClock clock;
  FlightRecord record(clock);
  std::atomic<uint32_t> progress{0};
  StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                      progress);
  reducer.note_in(&record);
  ASSERT_TRUE(world.step(reducer, 0, 4, merge, false).is_ok());
  std::vector<std::string> expected;
  for (size_t b = 0; b + 1 < world.bounds.size(); ++b)
    expected.push_back("sum 4/" + std::to_string(b) + " done");
  EXPECT_EQ(lines_of(record), expected);
}

// Where devices sum, a bucket runs from the host's call until the host has seen all sums.
TEST(FlightOfAStep, ItsRecordShowsWhatDevicesWereGivenAndHowItEnded) {
  for (const bool is_ok : {true, false}) {
    World world({{0, 1}}, 1, 256);
    World devices({{0, 1}}, 1, 256);
    const StepMerge merge = make_step_merge(world.runs, 1, {true});
    const SystemClock clock;
    FlightRecord record(clock);
    std::atomic<uint32_t> enqueued{0};
    SeparateSums sums(world.layout.buffer, regions_needed(1, 1));
    LookingWait waits(std::move(devices.collectives[0]), record, is_ok);
    StepReducer reducer(world.layout, *world.buffers[0], *world.collectives[0], 1, world.bounds,
                        enqueued, {.sums = &sums, .devices = &waits});
    reducer.note_in(&record);
    EXPECT_EQ(world.step(reducer, 0, 2, merge, false).is_ok(), is_ok);
    ASSERT_GE(waits.seen.size(), 2u);
    EXPECT_EQ(waits.seen.front(), "gpu_sum 2/0 running");
    EXPECT_EQ(waits.seen.back(), "gpu_wait 2/0 running");
    const auto after = lines_of(record);
    EXPECT_EQ(after.front(), is_ok ? "gpu_sum 2/0 done" : "gpu_sum 2/0 failed");
    EXPECT_EQ(after.back().starts_with("agree 2/"), is_ok);
  }
}

}  // namespace
}  // namespace lockstep
