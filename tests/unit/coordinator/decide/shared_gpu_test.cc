// Two workers on one GPU, or on slices of one, are refused by name where gradients go over NCCL.
#include <gmock/gmock.h>

#include <algorithm>

#include "comm/base/limits.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Options over(const char* backend) {
  Options options = small_options(3);
  options.job.mutable_comm()->set_backend(backend);
  return options;
}

wire::Register on_gpu(uint32_t local_rank, const std::string& pci, const std::string& uuid,
                      const std::string& machine = "m") {
  wire::Register m = World::registration(local_rank);
  m.mutable_gpu()->set_pci(pci);
  m.mutable_gpu()->set_uuid(uuid);
  m.mutable_data()->set_host_id(machine);
  return m;
}

TEST(SharedGpu, TwoWorkersOnOneGpuAreRefusedByName) {
  World w(over("nccl"));
  EXPECT_EQ(w.join(1, on_gpu(0, "0000:3b:00.0", "aa")), Reason::kRegistered);
  EXPECT_EQ(w.join(2, on_gpu(1, "0000:3b:00.0", "aa")), Reason::kEndedSharedGpu);
  ASSERT_EQ(w.ends.size(), 1u);
  EXPECT_EQ(w.ends[0].exit_code, 78);
  EXPECT_THAT(w.ends[0].message, AllOf(HasSubstr("0000:3b:00.0"), HasSubstr("member 1"),
                                       HasSubstr("comm.backend: host")));
}

TEST(SharedGpu, TwoSlicesOfOneGpuAreRefusedAsSuch) {
  World w(over("nccl"));
  w.join(1, on_gpu(0, "0000:3b:00.0", "aa"));
  EXPECT_EQ(w.join(2, on_gpu(1, "0000:3b:00.0", "bb")), Reason::kEndedSharedGpu);
  EXPECT_THAT(w.ends[0].message, HasSubstr("MIG slice"));
}

// Everyone who asks for the status gets the text.
TEST(SharedGpu, WhereAWorkerIsBoundIsKeptUnlessItIsTooLong) {
  World w(over("host"));
  wire::Register m = on_gpu(0, "0000:3b:00.0", "aa");
  m.mutable_gpu()->set_numa("NUMA node 1");
  w.join(1, m);
  EXPECT_EQ(w.state.members.begin()->second.gpu.numa(), "NUMA node 1");
  m = on_gpu(1, "0000:af:00.0", "bb");
  m.mutable_gpu()->set_numa(std::string(limits::kNumaBytes + 1, 'x'));
  w.join(2, m);
  EXPECT_EQ(w.state.members.rbegin()->second.gpu.numa(), "");
}

// Exact runs only: a share of the multiprocessors chooses other kernels.
TEST(SharedGpu, AShareOfAGpuIsNamedWhereItWouldComputeOtherBits) {
  World w(over("host"));
  const auto with = [](uint32_t rank, const char* gpu, const char* processors) {
    wire::Register m = World::registration(rank);
    m.mutable_fingerprint()->add_lines(std::string("gpu=") + gpu);
    m.mutable_fingerprint()->add_lines(std::string("gpu_processors=") + processors);
    return m;
  };
  EXPECT_EQ(w.join(1, with(0, "H100", "132")), Reason::kRegistered);
  w.join(2, with(1, "H100", "66"));
  EXPECT_THAT(w.sent(2).back().goodbye().message(),
              AllOf(HasSubstr("132"), HasSubstr("66"), HasSubstr("MPS"), HasSubstr("MIG")));
  World other(over("host"));
  other.join(1, with(0, "H100", "132"));
  other.join(2, with(1, "H200", "66"));
  EXPECT_THAT(other.sent(2).back().goodbye().message(), ::testing::Not(HasSubstr("MPS")));
}

TEST(SharedGpu, GpusOfOtherMachinesOrBusesAreOthers) {
  World w(over("nccl"));
  w.join(1, on_gpu(0, "0000:3b:00.0", "aa"));
  EXPECT_EQ(w.join(2, on_gpu(1, "0000:af:00.0", "bb")), Reason::kRegistered);
  EXPECT_NE(w.join(3, on_gpu(2, "0000:3b:00.0", "cc", "other")), Reason::kEndedSharedGpu);
  EXPECT_TRUE(w.ends.empty());
}

TEST(SharedGpu, AWorkerThatIsStartedAgainTakesItsOwnGpu) {
  World w(over("nccl"));
  w.join(1, on_gpu(0, "0000:3b:00.0", "aa"));
  wire::Register again = on_gpu(0, "0000:3b:00.0", "aa");
  again.set_pid(7777);
  EXPECT_EQ(w.join(2, again), Reason::kRegistered);
}

// The dead member stays in the state. A worker of another place takes its GPU, as when an agent
// that counts its workers from the start comes to the same machine.
TEST(SharedGpu, TheGpuOfAMemberThatDiedIsFree) {
  World w(over("nccl"));
  for (uint32_t rank = 0; rank < 3; ++rank)
    w.join(rank + 1, on_gpu(rank, "0000:3" + std::to_string(rank) + ":00.0", "aa"));
  for (ConnectionId c = 1; c <= 3; ++c) w.promise(c);
  ASSERT_EQ(w.state.run, RunState::kStarted);
  EXPECT_EQ(w.join(4, on_gpu(5, "0000:31:00.0", "aa")), Reason::kRefusedMisfit) << "it lives yet";
  ASSERT_EQ(w.kill(2), Reason::kRegrouped);
  ASSERT_EQ(w.state.members.at(2).state, MemberState::kDead);
  w.join(5, on_gpu(5, "0000:31:00.0", "aa"));
  const auto sent = w.sent(5);
  EXPECT_TRUE(std::any_of(sent.begin(), sent.end(), [](const wire::Envelope& e) {
    return e.has_registered();
  })) << "it was refused";
  EXPECT_TRUE(w.ends.empty());
}

TEST(SharedGpu, OverTheHostSeveralWorkersMayShareAGpu) {
  World w(over("host"));
  w.join(1, on_gpu(0, "0000:3b:00.0", "aa"));
  EXPECT_EQ(w.join(2, on_gpu(1, "0000:3b:00.0", "aa")), Reason::kRegistered);
}

}  // namespace
}  // namespace lockstep::coordinator
