#include "worker/script/desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/fails_with.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kLong{60'000};
constexpr std::chrono::milliseconds kNot{0};

ls_order order_of_step(uint64_t step) {
  ls_order order{};
  order.kind = LS_APPLY;
  order.step = step;
  return order;
}

TEST(Desk, AnOrderComesAndItsReplyGoesBack) {
  Desk desk;
  std::thread training([&] {
    for (uint64_t step = 0; step < 1000; ++step) {
      const auto reply = desk.ask(order_of_step(step));
      ASSERT_TRUE(reply.is_ok());
      EXPECT_EQ(reply->count, step + 1);
    }
    desk.end({.exit_code = 0, .is_done = true, .text = "all"});
  });
  ls_order order{};
  EXPECT_TRUE(desk.next(nullptr, &order, kLong).value());
  for (uint64_t step = 0; step < 1000; ++step) {
    ASSERT_EQ(order.kind, LS_APPLY);
    EXPECT_EQ(order.step, step);
    ls_reply reply{};
    reply.count = step + 1;
    ASSERT_TRUE(desk.next(&reply, &order, kLong).value());
  }
  EXPECT_EQ(order.kind, LS_END);
  EXPECT_TRUE(order.is_done);
  EXPECT_STREQ(order.text, "all");
  training.join();
}

TEST(Desk, WhoLeavesWithAnOrderInHandHasFailedIt) {
  Desk desk;
  desk.fail_in_hand(64);  // nothing is in hand
  std::thread training([&] { EXPECT_EQ(desk.ask(order_of_step(1))->code, 70); });
  ls_order order{};
  EXPECT_TRUE(desk.next(nullptr, &order, kLong).value());
  desk.fail_in_hand(0);
  training.join();
}

TEST(Desk, WhatTheScriptRaisedIsToldApartFromOtherFailures) {
  ls_reply reply{};
  reply.code = 70;
  reply.text = "KeyError\nTraceback";
  EXPECT_EQ(status_of(reply).code(), Code::kInternal);
  reply.has_raised = 1;
  EXPECT_THAT(status_of(reply), FailsWith(Code::kRaised, Says("KeyError")));
  EXPECT_EQ(exit_code(status_of(reply)), 70);
  reply.code = LS_OK;
  EXPECT_TRUE(status_of(reply).is_ok());
}

TEST(Desk, WhoWaitsLooksUpNowAndThen) {
  Desk desk;
  ls_order order{};
  EXPECT_FALSE(desk.next(nullptr, &order, kNot).value());
  EXPECT_FALSE(desk.next(nullptr, &order, kNot).value());
}

TEST(Desk, AReplyToNothingAndAWaitWithAnOrderInHandAreRefused) {
  Desk desk;
  ls_order order{};
  const ls_reply reply{};
  EXPECT_THAT(desk.next(&reply, &order, kNot).status(), FailsWith(Code::kUsage, Says("no order")));
  std::thread training([&] { (void)desk.ask(order_of_step(1)); });
  EXPECT_TRUE(desk.next(nullptr, &order, kLong).value());
  EXPECT_THAT(desk.next(nullptr, &order, kNot).status(), FailsWith(Code::kUsage, Says("reply")));
  EXPECT_FALSE(desk.next(&reply, &order, kNot).value());
  training.join();
}

TEST(Desk, AnOrderThatNobodyHasTakenEndsWithTheRun) {
  Desk desk;
  Status status;
  std::thread training([&] { status = desk.ask(order_of_step(1)).status(); });
  desk.end({.exit_code = 70, .is_done = false, .text = "why"});
  training.join();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_EQ(desk.ask(order_of_step(2)).status().code(), Code::kAborted);
  ls_order order{};
  EXPECT_TRUE(desk.next(nullptr, &order, kNot).value());
  EXPECT_EQ(order.kind, LS_END);
  EXPECT_EQ(order.exit_code, 70);
}

// Python may be in the middle of what the order lets it use.
TEST(Desk, AnOrderThatIsTakenWaitsForItsReplyThoughTheRunIsOver) {
  Desk desk;
  std::atomic<bool> is_back = false;
  Result<ls_reply> got = Status(Code::kInternal, "none");
  std::thread training([&] {
    got = desk.ask(order_of_step(1));
    is_back = true;
  });
  ls_order order{};
  EXPECT_TRUE(desk.next(nullptr, &order, kLong).value());
  desk.end({.exit_code = 0, .is_done = false, .text = {}});
  EXPECT_TRUE(desk.is_over());
  EXPECT_FALSE(desk.wait_until_told(kNot));
  EXPECT_FALSE(is_back);
  ls_reply reply{};
  reply.count = 7;
  EXPECT_TRUE(desk.next(&reply, &order, kLong).value());
  EXPECT_EQ(order.kind, LS_END);
  training.join();
  EXPECT_EQ(got.value().count, 7U);
  EXPECT_TRUE(desk.wait_until_told(kNot));
}

TEST(Desk, TheFirstEndCounts) {
  Desk desk;
  desk.end({.exit_code = 75, .is_done = false, .text = "first"});
  desk.end({.exit_code = 0, .is_done = true, .text = "second"});
  ls_order order{};
  EXPECT_TRUE(desk.next(nullptr, &order, kNot).value());
  EXPECT_EQ(order.exit_code, 75);
  EXPECT_STREQ(order.text, "first");
}

}  // namespace
}  // namespace lockstep
