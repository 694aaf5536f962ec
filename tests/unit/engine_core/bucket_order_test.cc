#include "worker/engine/bucket_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "comm/collectives/forwarding.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

using Numbers = std::vector<uint32_t>;

constexpr uint32_t kBuckets = 4;

// Counts broadcasts, and may damage what they bring.
class Watched final : public Forwarding<Collective> {
 public:
  using Forwarding::Forwarding;
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override {
    ++broadcasts;
    LOCKSTEP_RETURN_IF_ERROR(Forwarding::broadcast(tag, data, root));
    if (damages) std::memset(data.data(), 0, sizeof(uint32_t));
    return Status::ok();
  }
  int broadcasts = 0;
  bool damages = false;
};

class BucketOrderTest : public ::testing::Test {
 protected:
  BucketOrderTest() {
    std::vector<GradientBuffer*> raw;
    for (auto& buffer : buffers_)
      raw.push_back((buffer = make_plain_buffer({.elements = kCutElements}, 1)).get());
    auto made = make_loopback(1, raw);
    for (size_t r = 0; r < 2; ++r) ranks[r] = std::make_unique<Watched>(std::move(made[r]));
  }

  // Both ranks complete buckets in these orders, and end the step.
  void step(const Numbers& completed_by_0, const Numbers& completed_by_1) {
    const auto run = [&](size_t r, const Numbers& completed) {
      for (const uint32_t bucket : completed) orders[r].completed(bucket);
      status[r] = orders[r].agree(*ranks[r], 1, step_);
    };
    std::thread other(run, 1, std::cref(completed_by_1));
    run(0, completed_by_0);
    other.join();
    ++step_;
  }

  Numbers order_of(size_t rank) const {
    Numbers order;
    for (uint32_t i = 0; i < kBuckets; ++i) order.push_back(orders[rank].at(i));
    return order;
  }

  std::unique_ptr<Watched> ranks[2];
  BucketOrder orders[2] = {BucketOrder(kBuckets), BucketOrder(kBuckets)};
  Status status[2];

 private:
  std::unique_ptr<GradientBuffer> buffers_[2];
  Step step_ = 0;
};

TEST_F(BucketOrderTest, TheSecondStepHasTheOrderThatRank0NotedInTheFirst) {
  EXPECT_EQ(order_of(0), (Numbers{0, 1, 2, 3}));
  step({2, 0, 3, 1}, {1, 0, 2, 3});
  step({0, 1, 2, 3}, {0, 1, 2, 3});
  for (const size_t r : {0, 1}) {
    EXPECT_TRUE(status[r].is_ok()) << status[r].message();
    EXPECT_EQ(order_of(r), (Numbers{2, 0, 1, 3}));
    EXPECT_EQ(ranks[r]->broadcasts, 1);
  }
}

TEST_F(BucketOrderTest, WhereRank0HadNoSamplesItIsAskedAgain) {
  step({}, {2, 1, 0, 3});
  EXPECT_EQ(order_of(1), (Numbers{0, 1, 2, 3}));
  step({1, 2, 0, 3}, {2, 1, 0, 3});
  for (const size_t r : {0, 1}) EXPECT_EQ(order_of(r), (Numbers{1, 2, 0, 3}));
}

TEST_F(BucketOrderTest, WhatIsNoOrderIsAnError) {
  ranks[1]->damages = true;
  step({1, 0, 2, 3}, {});
  EXPECT_TRUE(status[0].is_ok());
  EXPECT_THAT(status[1], FailsWith(Code::kInternal, Says("4 buckets")));
}

TEST_F(BucketOrderTest, WhereThereIsOneOrderNobodyIsAsked) {
  orders[0] = orders[1] = BucketOrder(2);
  step({0, 1}, {0, 1});
  step({0, 1}, {0, 1});
  EXPECT_EQ(ranks[0]->broadcasts, 0);
}

}  // namespace
}  // namespace lockstep
