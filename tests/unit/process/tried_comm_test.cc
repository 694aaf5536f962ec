// comm.backend auto of whole workers, on devices in plain memory: what a failed trial leaves on the
// device, in the run's directory and in the log.
#include "worker/process/tried_comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "comm/collectives/loopback/loopback.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/engine/late_collective.h"
#include "tests/unit/engine/plain_module.h"
#include "worker/device/device_regions.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr BufferLayout kLayout{.gradients = 256, .statistics = 256, .elements = 272};
constexpr uint32_t kRegions = 4;

// Every look takes long.
class HastyClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return now_ns_ += 100'000'000; }
  int64_t wall_ms() const override { return 0; }

 private:
  mutable std::atomic<int64_t> now_ns_{0};
};

struct Worker;

// A connection of devices over loopback, or one that fails as it is told.
class ToyComm final : public DeviceComm {
 public:
  explicit ToyComm(Worker& of);
  ~ToyComm() override;
  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override;

 private:
  Worker& of_;
};

struct Worker {
  // `nccl`: its version; empty: there is none.
  Worker(const std::string& directory, std::string bus, std::string uuid,
         const std::string& nccl = "2.28.9") {
    module.opens = [this](GradientBuffer&,
                          DeviceCommOptions options) -> Result<std::unique_ptr<DeviceComm>> {
      if (module.nccl_version.empty()) return Status(Code::kConfig, "cannot open NCCL");
      on_stuck = std::move(options.on_stuck);
      return std::unique_ptr<DeviceComm>(std::make_unique<ToyComm>(*this));
    };
    module.nccl_version = nccl;
    EXPECT_TRUE(regions.reserve(1).is_ok());
    at_rest = module.allocated_bytes();
    TriedCommParts parts;
    parts.module = &module;
    parts.clock = &clock;
    parts.reserve = [this]() -> Result<GradientBuffer*> {
      LOCKSTEP_RETURN_IF_ERROR(regions.reserve(kRegions));
      LOCKSTEP_RETURN_IF_ERROR(regions.reserve_result(/*for_peers=*/false));
      return static_cast<GradientBuffer*>(&regions);
    };
    parts.release = [this] { regions.drop(); };
    parts.options.on_stuck = [this](const Status& why) { stuck.push_back(why.message()); };
    parts.gpu = {std::move(bus), std::move(uuid)};
    parts.notes_directory = directory + "/cache";
    parts.note = [this](const std::string& what) { notes.push_back(what); };
    comm = make_tried_comm(std::move(parts));
  }
  ~Worker() { comm.reset(); }

  bool is_at_rest() const { return module.allocated_bytes() == at_rest && living == 0; }

  testing::PlainModule module;
  DeviceRegions regions{module, kLayout};
  uint64_t at_rest = 0;  // bytes
  HastyClock clock;
  std::vector<std::string> notes;
  Status fails;  // each connect() of the devices
  std::unique_ptr<Collective> link;
  std::atomic<int> living{0};
  std::atomic<int> connects{0};
  std::shared_future<void> end_waits_for;
  std::function<void(const Status&)> on_stuck;  // of the connection
  std::vector<std::string> stuck;               // what came of it
  std::unique_ptr<DeviceComm> comm;
  std::unique_ptr<DeviceCollective> made;
  Status status;
};

ToyComm::ToyComm(Worker& of) : of_(of) {
  ++of_.living;
}

ToyComm::~ToyComm() {
  if (of_.end_waits_for.valid()) of_.end_waits_for.wait();
  --of_.living;
}

Result<std::unique_ptr<DeviceCollective>> ToyComm::connect(DeviceGeneration) {
  ++of_.connects;
  LOCKSTEP_RETURN_IF_ERROR(of_.fails);
  return std::unique_ptr<DeviceCollective>(
      std::make_unique<testing::LateCollective>(std::move(of_.link)));
}

class TriedComm : public ::testing::Test {
 protected:
  // Workers of one machine, each with a GPU of its own.
  void make(size_t count, const std::string& nccl = "2.28.9") {
    workers.clear();
    for (size_t r = 0; r < count; ++r)
      workers.push_back(std::make_unique<Worker>(temporary.path(), "0000:3b:0" + std::to_string(r),
                                                 "uuid" + std::to_string(r), nccl));
  }
  // A new generation of the first `count` workers; how many of them sum on devices.
  size_t start(Generation generation, size_t count) {
    std::vector<GradientBuffer*> hosts;
    std::vector<GradientBuffer*> devices;
    std::vector<std::unique_ptr<GradientBuffer>> plain;
    for (size_t r = 0; r < count; ++r) {
      workers[r]->made.reset();
      hosts.push_back(plain.emplace_back(make_plain_buffer(kLayout, 1)).get());
      devices.push_back(&workers[r]->regions);
    }
    auto control = make_loopback(generation, hosts);
    auto links = make_loopback(generation, devices);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < count; ++r) {
      workers[r]->link = std::move(links[r]);
      threads.emplace_back([&, r] {
        Worker& worker = *workers[r];
        std::vector<MemberId> members(count);
        std::iota(members.begin(), members.end(), 1u);
        auto made = worker.comm->connect({generation, members, std::vector<uint32_t>(count, 0),
                                          control[r].get(), 20'000, [] { return false; }});
        worker.status = made.status();
        if (made.is_ok()) worker.made = std::move(*made);
      });
    }
    for (std::thread& thread : threads) thread.join();
    size_t connected = 0;
    for (size_t r = 0; r < count; ++r) {
      EXPECT_TRUE(workers[r]->status.is_ok()) << workers[r]->status.message();
      connected += workers[r]->made != nullptr ? 1 : 0;
      workers[r]->made.reset();  // before the host's
    }
    return connected;
  }

  const TemporaryDirectory temporary;
  std::vector<std::unique_ptr<Worker>> workers;
};

TEST_F(TriedComm, ATrialThatSumsRightKeepsConnectionAndMemory) {
  make(2);
  EXPECT_EQ(start(1, 2), 2u);
  EXPECT_EQ(start(2, 2), 2u);
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->living, 1);
    EXPECT_GT(worker->module.allocated_bytes(), worker->at_rest);
  }
}

TEST_F(TriedComm, AFailedTrialGivesTheMemoryBackOnEveryRank) {
  make(2);
  workers[1]->fails = Status(Code::kAborted, "system error");
  EXPECT_EQ(start(1, 2), 0u);
  for (const auto& worker : workers) EXPECT_TRUE(worker->is_at_rest());
}

TEST_F(TriedComm, AMachineWithoutMemoryForSumsSumsOnTheHost) {
  make(2);
  workers[1]->comm.reset();
  workers[1]->regions.drop();
  workers[1]->module.bytes_left = 0;
  TriedCommParts parts;
  parts.module = &workers[1]->module;
  parts.clock = &workers[1]->clock;
  parts.reserve = [&]() -> Result<GradientBuffer*> {
    return workers[1]->regions.reserve(kRegions).is_ok()
               ? Result<GradientBuffer*>(&workers[1]->regions)
               : Result<GradientBuffer*>(Status(Code::kNoMemory, "out of memory"));
  };
  parts.release = [&] { workers[1]->regions.drop(); };
  workers[1]->comm = make_tried_comm(std::move(parts));
  EXPECT_EQ(start(1, 2), 0u);
  EXPECT_THAT(workers[0]->notes.at(0), HasSubstr("rank 1 (member 2): out of memory"));
}

TEST_F(TriedComm, WorkersThatAreStartedAgainDoNotTryWhatFailedForGood) {
  make(2);
  workers[1]->fails = Status(Code::kInternal, "invalid usage");
  EXPECT_EQ(start(1, 2), 0u);
  make(2);  // processes of the same run on the same GPUs
  for (const Generation generation : {Generation{2}, Generation{3}}) {
    EXPECT_EQ(start(generation, 2), 0u);
    for (const auto& worker : workers) {
      EXPECT_EQ(worker->connects, 0);
      EXPECT_TRUE(worker->is_at_rest());
      ASSERT_EQ(worker->notes.size(), 1u);
      // One rank is named, and what to do.
      EXPECT_THAT(worker->notes[0],
                  AllOf(HasSubstr("rank 1 (member 2): invalid usage"), HasSubstr("remove "),
                        HasSubstr(temporary.path()), Not(HasSubstr("rank 0"))));
    }
  }
  make(2, "2.29.1");
  EXPECT_EQ(start(4, 2), 2u) << "another NCCL has to be tried";
}

TEST_F(TriedComm, WorkersThatAreStartedAgainTryWhatMayHaveBeenAPeersDeath) {
  for (const Code code : {Code::kAborted, Code::kTimeout}) {
    make(2);
    workers[1]->fails = Status(code, "a peer is missing");
    EXPECT_EQ(start(1, 2), 0u);
    make(2);
    EXPECT_EQ(start(2, 2), 2u);
  }
}

TEST_F(TriedComm, RanksOnOneGpuSumOnTheHostAsLongAsTheyShareIt) {
  for (const bool is_sliced : {false, true}) {
    workers.clear();
    for (const char* uuid : {"a", "b", is_sliced ? "c" : "a"})
      workers.push_back(std::make_unique<Worker>(temporary.path(),
                                                 *uuid == 'b' ? "0000:af:00" : "0000:3b:00", uuid));
    EXPECT_EQ(start(1, 3), 0u);
    for (const auto& worker : workers) {
      EXPECT_EQ(worker->connects, 0);
      EXPECT_TRUE(worker->is_at_rest());
      EXPECT_THAT(worker->notes.at(0),
                  AllOf(HasSubstr("host sums"), HasSubstr("rank 2"), HasSubstr("rank 0"),
                        HasSubstr("0000:3b:00"), Not(HasSubstr("rank 1"))));
      EXPECT_EQ(worker->notes[0].find("MIG slice") != std::string::npos, is_sliced);
    }
    EXPECT_EQ(start(2, 2), 2u) << "the third is gone";
    EXPECT_EQ(workers[0]->notes.size(), 2u);
  }
}

// An older NCCL on one node, or none.
TEST_F(TriedComm, WorkersWithOtherVersionsOfNcclSumOnTheHostAndGiveTheMemoryBack) {
  make(2);
  workers.push_back(std::make_unique<Worker>(temporary.path(), "0000:3b:07", "uuid7", "2.27.3"));
  EXPECT_EQ(start(1, 3), 0u);
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->connects, 0);
    EXPECT_TRUE(worker->is_at_rest());
    ASSERT_EQ(worker->notes.size(), 1u);
    EXPECT_THAT(worker->notes[0], AllOf(HasSubstr("host sums"), HasSubstr("rank 2 (member 3)"),
                                        HasSubstr("2.27.3"), HasSubstr("2.28.9")));
  }
  EXPECT_EQ(start(2, 2), 2u) << "the third is gone";
}

TEST_F(TriedComm, AWorkerWithoutNcclMakesAllSumOnTheHostAsLongAsItIsThere) {
  make(2);
  workers.push_back(std::make_unique<Worker>(temporary.path(), "0000:3b:07", "uuid7", ""));
  EXPECT_EQ(start(1, 3), 0u);
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->connects, 0);
    EXPECT_TRUE(worker->is_at_rest());
    EXPECT_THAT(worker->notes.at(0), HasSubstr("rank 2 (member 3): cannot open NCCL"));
  }
  EXPECT_EQ(start(2, 2), 2u) << "the third is gone";
}

// No worker can go on to the host from inside a call: the process ends, and the next one must not
// end in the same way.
TEST_F(TriedComm, ACallThatDoesNotReturnFromATrialIsRememberedAndFromALaterStepNot) {
  make(2);
  workers[1]->on_stuck(Status(Code::kInternal, "hangs in init"));
  EXPECT_EQ(workers[1]->stuck, std::vector<std::string>{"hangs in init"});
  make(2);
  EXPECT_EQ(start(1, 2), 0u);
  EXPECT_THAT(workers[0]->notes.at(0), HasSubstr("rank 1 (member 2): hangs in init"));
  make(2, "2.29.1");
  EXPECT_EQ(start(2, 2), 2u);
  workers[1]->on_stuck(Status(Code::kInternal, "hangs in a step"));
  make(2, "2.29.1");
  EXPECT_EQ(start(3, 2), 2u);
}

// Operations that ran between the peers would never end on the device.
TEST_F(TriedComm, WhoIsLeftAloneEndsTheConnectionAndKeepsTheMemoryInWhichItSums) {
  make(2);
  EXPECT_EQ(start(1, 2), 2u);
  const uint64_t in_use = workers[0]->module.allocated_bytes();
  EXPECT_EQ(start(2, 1), 0u);
  EXPECT_EQ(workers[0]->living, 0);
  EXPECT_EQ(workers[0]->module.allocated_bytes(), in_use);
  EXPECT_EQ(start(3, 2), 2u) << "a peer came back";
}

TEST_F(TriedComm, AConnectionThatDoesNotEndDelaysTheHostsSumsForAWhileOnly) {
  make(2);
  std::promise<void> end;
  workers[0]->end_waits_for = end.get_future().share();
  workers[0]->fails = Status(Code::kAborted, "hangs");
  EXPECT_EQ(start(1, 2), 0u);
  EXPECT_FALSE(workers[0]->is_at_rest()) << "what may be in use is not given back";
  EXPECT_TRUE(workers[1]->is_at_rest());
  end.set_value();
  EXPECT_EQ(start(2, 2), 0u);
  EXPECT_TRUE(workers[0]->is_at_rest());
}

}  // namespace
}  // namespace lockstep
