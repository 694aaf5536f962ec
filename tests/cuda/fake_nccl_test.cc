// The stand-in's own habits: it refuses, leaves undone or never ends what NCCL 2.28.9 does.
#include "tests/cuda/fake_nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <thread>

#include "tests/cuda/fake_cuda.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeNcclTest : public ::testing::Test {
 protected:
  static constexpr size_t kRanks = 3;

  void SetUp() override {
    FakeNccl::get().reset();
    ncclUniqueId id = {};
    ASSERT_EQ(nccl.get_unique_id(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (size_t r = 0; r < kRanks; ++r) {
      ASSERT_EQ(nccl.init(&comms[r], kRanks, id, static_cast<int>(r), &config), ncclInProgress);
      ASSERT_EQ(settle(r), ncclSuccess);
    }
  }
  void TearDown() override {
    for (ncclComm_t comm : comms) {
      if (comm != nullptr) (void)nccl.abort(comm);
    }
    EXPECT_EQ(FakeNccl::get().living(), 0);
    FakeNccl::get().reset();
    FakeCuda::get().reset();
  }

  ncclResult_t settle(size_t rank) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress && nccl.async_error(comms[rank], &state) == ncclSuccess) {
    }
    return state;
  }
  ncclResult_t begin_sum(size_t rank, size_t elements = 3) {
    EXPECT_EQ(nccl.group_start(), ncclSuccess);
    float* const data = values[rank].data();
    const ncclResult_t result =
        nccl.all_reduce(data, data, elements, ncclFloat32, ncclSum, comms[rank], &streams[rank]);
    EXPECT_EQ(nccl.group_end(), result == ncclSuccess ? ncclInProgress : ncclSuccess);
    return result;
  }
  // Rank 0 sends, rank 1 receives. Sizes in elements.
  void send_and_receive(size_t sent, size_t received) {
    for (const size_t r : {size_t{0}, size_t{1}}) {
      ASSERT_EQ(nccl.group_start(), ncclSuccess);
      float* const data = values[r].data();
      ASSERT_EQ(r == 0 ? nccl.send(data, sent, ncclFloat32, 1, comms[r], &streams[r])
                       : nccl.receive(data, received, ncclFloat32, 0, comms[r], &streams[r]),
                ncclSuccess);
      ASSERT_EQ(nccl.group_end(), ncclInProgress);
      ASSERT_EQ(settle(r), ncclSuccess);
    }
  }
  void finish(size_t rank) { streams[rank].progress()->wait_for(streams[rank].posted()); }

  const nccl::NcclApi nccl = FakeNccl::api();
  std::array<ncclComm_t, kRanks> comms = {};
  std::array<CUstream_st, kRanks> streams;
  std::array<std::array<float, 4>, kRanks> values = {};
};

TEST_F(FakeNcclTest, HandsAGroupToTheStreamOnlyAfterGroupEnd) {
  ASSERT_EQ(begin_sum(0), ncclSuccess);
  EXPECT_EQ(streams[0].posted(), 0u);
  ASSERT_EQ(settle(0), ncclSuccess);
  EXPECT_EQ(streams[0].posted(), 1u);
}

TEST_F(FakeNcclTest, RefusesACommunicatorInProgress) {
  ASSERT_EQ(begin_sum(0), ncclSuccess);
  EXPECT_EQ(begin_sum(0), ncclInvalidArgument);
  EXPECT_THAT(FakeNccl::get().misuses(),
              ElementsAre("rank 0: all-reduce on a communicator in progress"));
}

TEST_F(FakeNcclTest, RefusesARevokedCommunicator) {
  ASSERT_EQ(nccl.revoke(comms[0], 0), ncclInProgress);
  ASSERT_EQ(settle(0), ncclSuccess);
  EXPECT_EQ(begin_sum(0), ncclInvalidUsage);
  EXPECT_THAT(FakeNccl::get().misuses(), ElementsAre("rank 0: all-reduce after revoke"));
}

TEST_F(FakeNcclTest, RevokesBadlyWhileAGroupIsUnderWay) {
  ASSERT_EQ(begin_sum(0), ncclSuccess);
  ASSERT_EQ(nccl.revoke(comms[0], 0), ncclInProgress);
  EXPECT_THAT(FakeNccl::get().misuses(), ElementsAre(HasSubstr("freed job of a group")));
}

TEST_F(FakeNcclTest, DestroysNoneThatFailedAndLeavesTheGroupOpen) {
  FakeNccl::get().fail(0, ncclRemoteError);
  EXPECT_EQ(nccl.destroy(comms[0]), ncclRemoteError);
  EXPECT_THAT(FakeNccl::get().misuses(), ElementsAre(HasSubstr("that has failed")));
  // Another communicator of this thread: its calls are only queued.
  EXPECT_EQ(nccl.group_start(), ncclSuccess);
  EXPECT_EQ(nccl.group_end(), ncclSuccess);
  EXPECT_EQ(nccl.destroy(comms[1]), ncclInvalidArgument);
  EXPECT_THAT(FakeNccl::get().misuses(),
              ElementsAre(HasSubstr("that has failed"), "rank 1: destroy in an open group"));
}

TEST_F(FakeNcclTest, NeverEndsASumOfDifferentSizes) {
  for (size_t r = 0; r < kRanks; ++r) {
    ASSERT_EQ(begin_sum(r, r == 2 ? 4 : 3), ncclSuccess);
    ASSERT_EQ(settle(r), ncclSuccess);
  }
  while (!FakeNccl::get().is_hopeless()) std::this_thread::yield();
  EXPECT_THAT(FakeNccl::get().misuses().front(), HasSubstr("different numbers"));
}

TEST_F(FakeNcclTest, NeverEndsATransferOfDifferentSizes) {
  send_and_receive(4, 3);
  while (!FakeNccl::get().is_hopeless()) std::this_thread::yield();
  EXPECT_THAT(FakeNccl::get().misuses(), ElementsAre("rank 0 sends 16 bytes, rank 1 receives 12"));
}

TEST_F(FakeNcclTest, NeverEndsATransferFromRegisteredIntoOtherMemory) {
  void* handle = nullptr;
  ASSERT_EQ(fake_register(comms[0], values[0].data(), sizeof values[0], &handle), ncclSuccess);
  send_and_receive(4, 4);
  while (!FakeNccl::get().is_hopeless()) std::this_thread::yield();
  EXPECT_THAT(FakeNccl::get().misuses(),
              ElementsAre("rank 0 sends 16 bytes from registered memory, rank 1 receives them into "
                          "unregistered memory"));
}

TEST_F(FakeNcclTest, DeregistersNothingAfterRevoke) {
  void* handle = nullptr;
  ASSERT_EQ(fake_register(comms[0], values[0].data(), sizeof values[0], &handle), ncclSuccess);
  ASSERT_EQ(nccl.revoke(comms[0], 0), ncclInProgress);
  ASSERT_EQ(settle(0), ncclSuccess);
  EXPECT_EQ(fake_deregister(comms[0], handle), ncclSystemError);
  EXPECT_THAT(FakeNccl::get().misuses(), ElementsAre("rank 0: deregister after revoke"));
}

// Rank 1 finds no memory for its neighbours. The others hear nothing of it.
TEST_F(FakeNcclTest, TakesMemoryForEachPeerAndFailsForWantOfItAlone) {
  ASSERT_EQ(begin_sum(0), ncclSuccess);
  ASSERT_EQ(settle(0), ncclSuccess);
  const uint64_t taken = FakeNccl::get().most_taken(0);
  EXPECT_EQ(taken, FakeNccl::kInitBytes + 2 * 32 * FakeNccl::kChannelBytes);
  ASSERT_EQ(begin_sum(0), ncclSuccess);
  ASSERT_EQ(settle(0), ncclSuccess);
  EXPECT_EQ(FakeNccl::get().most_taken(0), taken);
  FakeNccl::get().gpu_bytes = taken - 1;
  ASSERT_EQ(begin_sum(1), ncclSuccess);
  EXPECT_EQ(settle(1), ncclUnhandledCudaError);
  EXPECT_EQ(settle(0), ncclSuccess);
  EXPECT_THAT(FakeNccl::get().misuses(), IsEmpty());
}

TEST_F(FakeNcclTest, AddsInAnOrderThatDependsOnTheElement) {
  for (size_t r = 0; r < kRanks; ++r) {
    values[r].fill(r == 0 ? 1.0F : r == 1 ? 1e8F : -1e8F);
    ASSERT_EQ(begin_sum(r), ncclSuccess);
    ASSERT_EQ(settle(r), ncclSuccess);
  }
  finish(0);
  EXPECT_THAT(values[0], ElementsAre(1.0F, 0.0F, 0.0F, 1.0F));  // the last one is not summed
}

TEST(FakeCudaTest, AFullStreamMakesTheNextCallWait) {
  CUstream_st stream;
  std::promise<void> goes_on;
  stream.post([until = goes_on.get_future().share()] { until.wait(); });
  while (stream.queued() > 0) std::this_thread::yield();
  for (size_t i = 0; i < CUstream_st::kQueued; ++i) stream.post([] {});
  std::thread calls([&] { stream.post([] {}); });
  while (stream.waiting() == 0) std::this_thread::yield();
  EXPECT_EQ(stream.posted(), CUstream_st::kQueued + 1);
  goes_on.set_value();
  calls.join();
}

}  // namespace
}  // namespace lockstep::testing
