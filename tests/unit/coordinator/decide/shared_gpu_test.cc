// Two workers on one GPU, or on slices of one, are refused by name where gradients go over NCCL.
#include <gmock/gmock.h>

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

TEST(SharedGpu, OverTheHostSeveralWorkersMayShareAGpu) {
  World w(over("host"));
  w.join(1, on_gpu(0, "0000:3b:00.0", "aa"));
  EXPECT_EQ(w.join(2, on_gpu(1, "0000:3b:00.0", "aa")), Reason::kRegistered);
}

}  // namespace
}  // namespace lockstep::coordinator
