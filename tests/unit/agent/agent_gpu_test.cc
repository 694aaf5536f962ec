// Tests what an agent does when the GPU of one of its places is unfit (NVML is a stand-in).
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "comm/base/limits.h"
#include "tests/unit/agent/agent_world.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr char kTwoGpus[] = "devices 2\nwhole_uuids 1\nlinks 3\n";
constexpr char kSecondWaits[] = "remap_pending.1 1\n";
constexpr char kBothWait[] = "remap_pending.0 1\nremap_pending.1 1\n";

class AgentGpuTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    // It leaves as a member does that the coordinator leaves out, when a file says so.
    ASSERT_TRUE(replace_file(directory_ + "/worker",
                             "#!/bin/sh\ncd \"${0%/*}\"\n"
                             "while ! [ -e leave.$4 ]; do sleep 0.01; done\nrm leave.$4\n",
                             0755)
                    .is_ok());
    options_.nvml_library = FAKE_NVML_LIBRARY;
    options_.uses_gpus = true;
    options_.gpu_look_ms = 20;
    options_.gpu_of_number = [](uint32_t number) { return std::string(31, '0') + "01"[number]; };
    gpus_.say(kTwoGpus);
  }

  void bid_to_leave(uint32_t local_rank) {
    ASSERT_TRUE(replace_file(directory_ + "/leave." + std::to_string(local_rank), "").is_ok());
  }

  void call_unfit(uint32_t workers, uint32_t local_rank) {
    wire::Envelope envelope;
    envelope.mutable_set_workers()->set_workers(workers);
    envelope.mutable_set_workers()->add_unfit_local_ranks(local_rank);
    server_->send(peer_, envelope);
  }

  wire::NodeNotice next_notice() {
    wire::Envelope envelope = next();
    while (!envelope.has_node_notice()) envelope = next();
    return envelope.node_notice();
  }

  wire::AgentHello next_hello() {
    wire::Envelope envelope = next();
    while (!envelope.has_agent_hello()) envelope = next();
    return envelope.agent_hello();
  }

  // Returns how many workers live, as the agent tells a coordinator that comes back.
  std::vector<uint32_t> living() {
    server_->disconnect(peer_);
    heard_.clear();
    const wire::AgentHello hello = next_hello();
    return {hello.living().begin(), hello.living().end()};
  }

  bool has_notice() const {
    return std::any_of(heard_.begin(), heard_.end(),
                       [](const wire::Envelope& e) { return e.has_node_notice(); });
  }

  test::FakeGpus gpus_;
};

TEST_F(AgentGpuTest, AWorkerThatLeavesAnUnfitGpuIsFollowedByOneWhenTheGpuIsFit) {
  start_agent();
  ASSERT_EQ(next().agent_hello().living_size(), 2);
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  const wire::NodeNotice notice = next_notice();
  EXPECT_EQ(notice.source(), "gpu");
  EXPECT_FALSE(notice.undo());
  ASSERT_EQ(notice.local_ranks_size(), 1);
  EXPECT_EQ(notice.local_ranks(0), 1u);
  EXPECT_THAT(notice.reason(), HasSubstr("reset the"));

  bid_to_leave(1);
  const wire::WorkerExit exit = next().worker_exit();
  EXPECT_EQ(exit.local_rank(), 1u);
  EXPECT_EQ(exit.exit_code(), 0);
  EXPECT_FALSE(exit.will_restart());
  EXPECT_EQ(living().size(), 1u);
  EXPECT_FALSE(next_notice().undo()) << "a coordinator that comes back hears it, too";

  gpus_.say(kTwoGpus);
  EXPECT_TRUE(next_notice().undo());
  EXPECT_EQ(living().size(), 2u);
}

TEST_F(AgentGpuTest, APlaceWhoseGpuIsUnfitAtTheStartGetsNoWorkerBeforeItIsFit) {
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  EXPECT_EQ(hello.workers(), 2u);
  EXPECT_EQ(hello.living_size(), 1);
  EXPECT_EQ(next().node_notice().local_ranks(0), 1u);
  gpus_.say(kTwoGpus);
  EXPECT_TRUE(next_notice().undo());
  EXPECT_EQ(living().size(), 2u);
}

TEST_F(AgentGpuTest, AWorkerThatLeavesWhenItsGpuIsFitAgainIsFollowedAtOnce) {
  start_agent();
  next();
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  EXPECT_FALSE(next_notice().undo());
  gpus_.say(kTwoGpus);
  EXPECT_TRUE(next_notice().undo());
  bid_to_leave(1);
  EXPECT_TRUE(next().worker_exit().will_restart());
}

TEST_F(AgentGpuTest, AHeldPlaceThatTheRunNeedsGetsAWorkerAndIsHeldAgainWhenThatOneLeaves) {
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  start_agent();
  ASSERT_EQ(next().agent_hello().living_size(), 1);
  call_unfit(2, 1);
  EXPECT_EQ(living().size(), 2u);
  call_unfit(2, 1);  // the order may be doubled
  EXPECT_EQ(living().size(), 2u);
  bid_to_leave(1);
  wire::Envelope envelope = next();
  while (!envelope.has_worker_exit()) envelope = next();
  EXPECT_FALSE(envelope.worker_exit().will_restart());
  EXPECT_EQ(living().size(), 1u);
  gpus_.say(kTwoGpus);
  while (!next_notice().undo()) continue;
  EXPECT_EQ(living().size(), 2u);
}

// The first worker's GPU shows when the agent has looked. The agent takes the two orders in turn.
TEST_F(AgentGpuTest, APlaceThatIsNotWantedCountsAsFitAndIsHeldWhenItIsWantedAgain) {
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  ASSERT_EQ(hello.living_size(), 2);
  say_workers(1);
  order_to_kill(hello.living(1));
  ASSERT_EQ(next().worker_exit().local_rank(), 1u);
  gpus_.say(std::string(kTwoGpus) + kBothWait);
  EXPECT_EQ(next_notice().local_ranks(0), 0u);
  say_workers(2);
  const wire::NodeNotice notice = next_notice();
  EXPECT_EQ(notice.local_ranks(0), 1u);
  EXPECT_FALSE(notice.undo());
  EXPECT_EQ(living().size(), 1u);

  gpus_.say(kTwoGpus);
  std::set<uint32_t> fit;
  while (fit.size() < 2)
    if (const wire::NodeNotice told = next_notice(); told.undo()) fit.insert(told.local_ranks(0));
  EXPECT_EQ(living().size(), 2u);

  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  EXPECT_FALSE(next_notice().undo());
  say_workers(1);
  bid_to_leave(1);
  const wire::NodeNotice gone = next_notice();
  EXPECT_EQ(gone.local_ranks(0), 1u);
  EXPECT_TRUE(gone.undo());
}

// An exit may end the run, unless the coordinator knows of a held place by then.
TEST_F(AgentGpuTest, ACoordinatorThatComesBackHearsNoticesBeforeExits) {
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  start_agent();
  next_notice();
  bid_to_leave(0);
  wire::Envelope envelope = next();
  while (!envelope.has_worker_exit()) envelope = next();
  server_->disconnect(peer_);
  heard_.clear();
  next_hello();
  EXPECT_TRUE(next().has_node_notice());
  EXPECT_TRUE(next().has_worker_exit());
}

// Only the coordinator knows whether it can do without the worker.
TEST_F(AgentGpuTest, AWorkerThatCrashesOnAnUnfitGpuIsStartedAgain) {
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  gpus_.say(std::string(kTwoGpus) + kSecondWaits);
  next_notice();
  ::kill(static_cast<pid_t>(hello.living(1)), SIGKILL);
  EXPECT_TRUE(next().worker_exit().will_restart());
}

TEST_F(AgentGpuTest, WithTellEveryPlaceIsStartedAndWithOffNobodyLooks) {
  for (const char* mode : {"tell", "off"}) {
    options_.job.mutable_cluster()->set_gpu_health(mode);
    gpus_.say(std::string(kTwoGpus) + kSecondWaits);
    start_agent();
    EXPECT_EQ(next_hello().living_size(), 2);
    if (std::string(mode) == "tell") {
      EXPECT_FALSE(next_notice().undo());
    }
    EXPECT_EQ(end_with(0), 0);
    if (std::string(mode) == "off") {
      EXPECT_FALSE(has_notice());
    }
    heard_.clear();
  }
}

TEST_F(AgentGpuTest, AJobOnCpusAndAnAgentWithoutNvmlLookAtNothing) {
  for (const bool uses_gpus : {false, true}) {
    options_.uses_gpus = uses_gpus;
    if (uses_gpus) options_.nvml_library = "libno-such-nvml.so";
    gpus_.say(std::string(kTwoGpus) + kSecondWaits);
    start_agent();
    EXPECT_EQ(next_hello().living_size(), 2);
    EXPECT_EQ(end_with(0), 0);
    EXPECT_FALSE(has_notice());
    heard_.clear();
  }
}

TEST_F(AgentGpuTest, WhereNoPlaceIsFitTheAgentWaitsForTheCoordinatorsWord) {
  gpus_.say(std::string(kTwoGpus) + "remap_failed 1\n");
  start_agent();
  EXPECT_EQ(next().agent_hello().living_size(), 0);
  next_notice();
  next_notice();
  EXPECT_EQ(end_with(78), 78);
}

}  // namespace
}  // namespace lockstep
