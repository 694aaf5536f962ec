// Tests what a worker leaves of a hang: its collectives, and the end of NCCL's log.
#include "worker/process/hang_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/base/descriptors.h"
#include "comm/base/text/utf8.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "worker/process/nccl_log.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SetClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return ms * 1'000'000; }
  int64_t wall_ms() const override { return ms; }
  int64_t ms = 1'000;
};

class HangNotesTest : public ::testing::Test {
 protected:
  HangNotes make(const std::string& nccl_log = "") {
    return HangNotes({flight_, path_, "worker-0", "node \x01 a", nccl_log, 500});
  }
  json written() const {
    EXPECT_TRUE(is_utf8(slurp(path_)));
    return json::parse(slurp(path_));
  }

  // A file that another thread writes comes to its place by a rename.
  void watch_folder() {
    std::filesystem::create_directory(temporary_.path() + "/logs");
    ASSERT_TRUE(folder_.is_open());
    ASSERT_GE(
        ::inotify_add_watch(folder_.get(), (temporary_.path() + "/logs").c_str(), IN_MOVED_TO), 0);
  }
  void wait_for_file() {
    alignas(inotify_event) std::array<char, 4096> events;
    while (!std::filesystem::exists(path_))
      ASSERT_GT(::read(folder_.get(), events.data(), events.size()), 0);
  }

  TemporaryDirectory temporary_;
  const Descriptor folder_{::inotify_init1(IN_CLOEXEC)};
  const std::string path_ = temporary_.path() + "/logs/worker-0.hang.json";
  SetClock clock_;
  FlightRecord flight_{clock_};
};

TEST_F(HangNotesTest, AWorkerThatHangsNotesItsOperationsAndTheEndOfNcclsLog) {
  const std::string log = make_nccl_log(temporary_.path(), "worker-0");
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "NCCL WARN " + std::to_string(i) + "\n";
  write_file(log, text + "\x1b[2J\xff</script>\n" + std::string(10'000, 'x'));
  flight_.begin_generation({.generation = 3, .rank = 1, .world = 4});
  for (uint32_t i = 0; i < 2 * limits::kFlightLines; ++i)
    flight_.end(flight_.queue(FlightOperation::kSum, {3, i, 0}), true);
  flight_.run(flight_.queue(FlightOperation::kSum, {3, 777, 5}));
  clock_.ms += 31'000;
  ASSERT_TRUE(make(log).save("this worker hangs", {777, Phase::kTrain, 5, 6}).is_ok());
  const json file = written();
  EXPECT_EQ(file["rank"], 1);
  EXPECT_EQ(file["world"], 4);
  EXPECT_EQ(file["generation"], 3);
  EXPECT_EQ(file["buckets_given"], 6);
  ASSERT_EQ(file["operations"].size(), limits::kHangLines);
  const json& last = file["operations"].back();
  EXPECT_EQ(last["state"], "running");
  EXPECT_EQ(last["step"], 777);
  EXPECT_EQ(last["bucket"], 5);
  EXPECT_EQ(last["running_ms"], 31'000);
  EXPECT_TRUE(last["ended_ms"].is_null());
  ASSERT_EQ(file["nccl"].size(), limits::kHangLines);
  for (const json& line : file["nccl"])
    EXPECT_LT(line.get<std::string>().size(), limits::kHangLineBytes + 8);
  EXPECT_EQ(file["nccl"][limits::kHangLines - 2], "\\x1b[2J\\xff</script>");
  EXPECT_LT(slurp(path_).size(), limits::kHangFileBytes);
}

// As the largest that may be: it has to be read again.
TEST_F(HangNotesTest, AFileIsNeverLongerThanItsReaderTakes) {
  const std::string log = make_nccl_log(temporary_.path(), "worker-0");
  write_file(log, std::string(1 << 20, '\x01'));
  flight_.begin_generation({~Generation{0}, ~0u, ~0u});
  for (uint32_t i = 0; i < limits::kFlightLines; ++i)
    flight_.end(flight_.queue(FlightOperation::kConnectGpus, {~Generation{0}, ~Step{0}, ~0u}),
                false);
  ASSERT_TRUE(make(log).save("this worker hangs", {}).is_ok());
  EXPECT_LT(slurp(path_).size(), limits::kHangFileBytes);
  std::string lines;
  for (int i = 0; i < 1'000; ++i) lines += std::string(limits::kHangLineBytes, '\x02') + "\n";
  write_file(log, lines);
  ASSERT_TRUE(make(log).save("this worker hangs", {}).is_ok());
  EXPECT_LT(slurp(path_).size(), limits::kHangFileBytes);
}

TEST_F(HangNotesTest, ASurvivorNotesOnceWhatStoodStillWhenItsGenerationWasClosed) {
  watch_folder();
  HangNotes notes = make();
  flight_.begin_generation({.generation = 3, .rank = 0, .world = 2});
  Flight flight(&flight_, FlightOperation::kSum, {3, 12, 3});
  clock_.ms += 501;
  EXPECT_TRUE(notes.look({12, Phase::kTrain, 3, 3}));
  wait_for_file();
  EXPECT_THAT(written()["why"], HasSubstr("stood still"));
  EXPECT_FALSE(notes.look({12, Phase::kTrain, 3, 3})) << "it has told of this generation";
}

TEST_F(HangNotesTest, AGenerationThatADeathEndedLeavesNothing) {
  HangNotes notes = make();
  EXPECT_FALSE(notes.look({}));
  flight_.begin_generation({.generation = 3, .rank = 0, .world = 2});
  Flight flight(&flight_, FlightOperation::kSum, {3, 12, 3});
  clock_.ms += 499;
  EXPECT_FALSE(notes.look({12, Phase::kTrain, 3, 3}));
  EXPECT_THAT(names_in(temporary_.path()), IsEmpty());
}

TEST_F(HangNotesTest, WhatTheHangingWorkerWroteIsNotReplacedAtItsEnd) {
  HangNotes notes = make();
  flight_.begin_generation({.generation = 3, .rank = 0, .world = 2});
  Flight flight(&flight_, FlightOperation::kSum, {3, 12, 3});
  clock_.ms += 5'000;
  ASSERT_TRUE(notes.save("this worker hangs", {}).is_ok());
  EXPECT_FALSE(notes.look({}));
}

class NcclLog : public HangNotesTest {
 protected:
  const std::string log_ = temporary_.path() + "/logs/worker-0.nccl.txt";
};

TEST_F(NcclLog, EachPlaceKeepsItsLogAndTheOneBeforeHoweverOftenItsWorkerStarts) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(make_nccl_log(temporary_.path(), "worker-0"), log_);
    write_file(log_, "from start " + std::to_string(i) + "\n");
  }
  ASSERT_EQ(make_nccl_log(temporary_.path(), "worker-0"), log_);
  ASSERT_EQ(make_nccl_log(temporary_.path(), "worker-0"), log_) << "nothing was written";
  EXPECT_THAT(names_in(temporary_.path() + "/logs"),
              ElementsAre("worker-0.nccl.txt", "worker-0.nccl.txt.1"));
  EXPECT_EQ(slurp(log_ + ".1"), "from start 4\n");
}

// NCCL opens the file again and removes its content.
TEST_F(NcclLog, NoOtherFileIsGivenToNcclByALinkOrAPipe) {
  const std::string precious = temporary_.path() + "/precious";
  write_file(precious, "weights");
  std::filesystem::create_directory(temporary_.path() + "/logs");
  std::filesystem::create_symlink(precious, log_);
  EXPECT_EQ(make_nccl_log(temporary_.path(), "worker-0"), "");
  std::filesystem::remove(log_);
  std::filesystem::create_hard_link(precious, log_);
  EXPECT_EQ(make_nccl_log(temporary_.path(), "worker-0"), "");
  EXPECT_THAT(read_nccl_log(log_), IsEmpty());
  std::filesystem::remove(log_);
  ASSERT_EQ(::mkfifo(log_.c_str(), 0600), 0);
  EXPECT_EQ(make_nccl_log(temporary_.path(), "worker-0"), "");
  EXPECT_THAT(read_nccl_log(log_), IsEmpty()) << "and nobody waits for a writer";
  EXPECT_EQ(slurp(precious), "weights");
}

TEST_F(NcclLog, WithoutAPlaceForItThereIsNone) {
  EXPECT_EQ(make_nccl_log(temporary_.path() + "/gone", "worker-0"), "");
  EXPECT_THAT(read_nccl_log(temporary_.path() + "/gone/logs/worker-0.nccl.txt"), IsEmpty());
}

TEST_F(NcclLog, AHoleThatACutHasLeftIsNoText) {
  ASSERT_EQ(make_nccl_log(temporary_.path(), "worker-0"), log_);
  write_file(log_, "x");
  std::filesystem::resize_file(log_, 1 << 20);
  std::ofstream(log_, std::ios::app) << "NCCL WARN late\n";
  EXPECT_THAT(read_nccl_log(log_), ElementsAre("NCCL WARN late"));
}

TEST_F(NcclLog, NcclReplacesNothingInItsName) {
  EXPECT_EQ(nccl_debug_file("/runs/50%h/logs"), "/runs/50%%h/logs");
}

}  // namespace
}  // namespace lockstep
