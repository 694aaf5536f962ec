// One rank's side of a test that all ranks of mpirun run together. Every test has a communicator of
// its own, since a world ends with its first abort.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/collectives/mpi/mpi_world.h"
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
    lane_ = make_lane(false);
  }
  // No rank begins the next test before all have ended this one.
  ~MpiTest() override {
    collective_.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }

  std::unique_ptr<MpiLane> make_lane(bool fast) const {
    auto made = open_mpi_world(comm_, fast);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }

  void make_buffer(const BufferLayout& layout, uint32_t regions) {
    buffer_ = make_plain_buffer(layout, regions);
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
    collective_.reset();
    auto opened = lane_->open(generation, rank, order, buffer_.get());
    if (!opened.is_ok()) return opened.status();
    collective_ = std::move(opened).value();
    return Status::ok();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;  // not freed: messages of an abort may be under way
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  std::unique_ptr<MpiLane> lane_;
  std::unique_ptr<GradientBuffer> buffer_;
  std::unique_ptr<Collective> collective_;
};

}  // namespace lockstep::testing
