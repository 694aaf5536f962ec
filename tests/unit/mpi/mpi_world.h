// One rank's side of a test that all ranks of mpirun run together. Every test has a communicator of
// its own, since a world ends with its first abort.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/collectives/mpi/mpi_context.h"
#include "tests/unit/collectives/world.h"

namespace lockstep::testing {

class MpiTest : public ::testing::Test {
 protected:
  MpiTest() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    int size = 0;
    int rank = 0;
    MPI_Comm_size(comm_, &size);
    MPI_Comm_rank(comm_, &rank);
    ranks_ = static_cast<uint32_t>(size);
    rank_ = static_cast<uint32_t>(rank);
    context_ = make_context(false);
  }
  // Nobody begins the next test before all have ended this one.
  ~MpiTest() override {
    collective_.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::unique_ptr<HostContext> make_context(bool fast) const {
    auto made = make_mpi_context(comm_, fast);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }

  void make_buffer(const BufferLayout& layout, uint32_t regions) {
    auto made = context_->make_buffer(layout, regions);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    buffer_ = std::move(made).value();
  }

  // A generation of all, in the order of MPI's ranks.
  void start(Generation generation) {
    std::vector<int> order;
    for (uint32_t r = 0; r < ranks_; ++r) order.push_back(static_cast<int>(r));
    const Status status = connect(generation, rank_, order);
    ASSERT_TRUE(status.is_ok()) << status.message();
  }

  // order[r]: the MPI rank of rank r.
  Status connect(Generation generation, uint32_t rank, const std::vector<int>& order) {
    std::vector<PeerAddress> peers;
    for (const int mpi_rank : order) {
      peers.push_back(
          {static_cast<MemberId>(100 + mpi_rank), {"", "", "mpi:" + std::to_string(mpi_rank)}});
    }
    collective_.reset();
    auto connected = context_->connect(generation, rank, peers[rank].member, peers, kConnectMs);
    if (!connected.is_ok()) return connected.status();
    collective_ = std::move(connected).value();
    return Status::ok();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;  // not freed: messages of an abort may be under way
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  std::unique_ptr<HostContext> context_;
  std::unique_ptr<GradientBuffer> buffer_;
  std::unique_ptr<Collective> collective_;
};

}  // namespace lockstep::testing
