#include <gtest/gtest.h>

#include "comm/rpc/memory_transport.h"

namespace lockstep::rpc {
namespace {

TEST(SimLoop, RunsByTimeThenByOrderOfScheduling) {
  SimLoop loop;
  std::string order;
  loop.call_after(10, [&] { order += 'c'; });
  loop.call_after(5, [&] {
    order += 'a';
    loop.post([&] { order += 'b'; });
  });
  loop.call_after(10, [&] { order += 'd'; });
  loop.run_for(9);
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(loop.now_ms(), 9);
  loop.run_for(1);
  EXPECT_EQ(order, "abcd");
  EXPECT_FALSE(loop.run_one());
}

class SimNetwork : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = server_->listen({"coordinator", 1}, [this](std::shared_ptr<Connection> c) {
      far_ = std::move(c);
      far_->set_handlers({.on_frame = [this](wire::Frame&& f) { far_got_ += f.payload; },
                          .on_close = [this](const Status& s) { far_lost_ = s; }});
    });
    ASSERT_TRUE(listener.is_ok());
    listener_ = std::move(listener).value();
  }

  void connect(int64_t timeout_ms = 1'000) {
    client_->connect({"coordinator", 1}, timeout_ms, [this](auto result) {
      connected_ = result.status();
      ++connect_answers_;
      if (!result.is_ok()) return;
      near_ = std::move(result).value();
      near_->set_handlers({.on_frame = [this](wire::Frame&& f) { near_got_ += f.payload; },
                           .on_close = [this](const Status& s) { near_lost_ = s; }});
    });
  }

  void say(const std::string& text) { near_->send({wire::FrameKind::kEnvelope, text}); }

  SimLoop loop_;
  MemoryNetwork network_{loop_};
  std::unique_ptr<MemoryTransport> server_ = network_.transport("server");
  std::unique_ptr<MemoryTransport> client_ = network_.transport("client");
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> near_;
  std::shared_ptr<Connection> far_;
  std::string near_got_;
  std::string far_got_;
  Status near_lost_;
  Status far_lost_;
  Status connected_;
  int connect_answers_ = 0;
};

TEST_F(SimNetwork, ADelayedFrameTakesItsTimeAndIsNotOvertaken) {
  network_.set_delay("client", "server", 50);
  connect();
  loop_.run_for(99);
  EXPECT_EQ(connect_answers_, 0);
  loop_.run_for(1);
  EXPECT_EQ(connect_answers_, 1);
  say("a");
  network_.set_delay("client", "server", 1);
  say("b");
  loop_.run_for(49);
  EXPECT_EQ(far_got_, "");
  loop_.run_for(1);
  EXPECT_EQ(far_got_, "ab");
}

TEST_F(SimNetwork, APartitionHoldsFramesUntilItHeals) {
  connect();
  loop_.run_for(1);
  network_.partition("server", "client");
  say("a");
  loop_.run_for(10'000);
  EXPECT_EQ(far_got_, "");
  EXPECT_TRUE(near_lost_.is_ok());
  network_.heal("client", "server");
  loop_.run_for(1);
  EXPECT_EQ(far_got_, "a");
}

TEST_F(SimNetwork, AConnectIntoAPartitionTimesOutOnce) {
  network_.partition("server", "client");
  connect(200);
  loop_.run_for(200);
  EXPECT_EQ(connected_.code(), Code::kTimeout);
  network_.heal("server", "client");
  loop_.run_for(10'000);
  EXPECT_EQ(connect_answers_, 1);
}

TEST_F(SimNetwork, ACutTellsBothSidesAndLosesWhatWasOnTheWay) {
  network_.set_delay("client", "server", 5);
  connect();
  loop_.run_for(10);
  say("a");
  EXPECT_EQ(network_.cut("client", "server"), 1u);
  loop_.run_for(100);
  EXPECT_EQ(far_got_, "");
  EXPECT_EQ(near_lost_.code(), Code::kUnavailable);
  EXPECT_EQ(far_lost_.code(), Code::kUnavailable);
}

TEST_F(SimNetwork, ACrashedNodeHearsNothingAndItsPortIsFree) {
  connect();
  loop_.run_for(1);
  EXPECT_EQ(network_.crash("server"), 1u);
  loop_.run_for(1);
  EXPECT_EQ(near_lost_.code(), Code::kUnavailable);
  EXPECT_TRUE(far_lost_.is_ok());
  connect();
  loop_.run_for(1);
  EXPECT_EQ(connected_.code(), Code::kUnavailable);
}

// A kernel, too, resets what waits in the backlog of a process that is killed while it is stopped.
TEST_F(SimNetwork, AConnectOfANodeThatHasEndedTakesNoTimerOfAnother) {
  bool others_came = false;
  loop_.call_after(100, [&] { others_came = true; });  // the first timer of this loop
  SimLoop own;
  const auto process = network_.transport("process", own);
  network_.set_delay("process", "server", 5);
  process->connect({"coordinator", 1}, 1'000, [](const auto&) {});  // the first timer of its loop
  loop_.run_for(2);  // it is on its way to the server
  network_.exit("process");
  loop_.run_for(200);
  EXPECT_TRUE(others_came);
}

TEST_F(SimNetwork, AConnectThatAStoppedProcessNeverAcceptedBreaksWhenItDies) {
  SimLoop stopped;
  const auto other = network_.transport("other", stopped);
  const auto door = other->listen({"other", 2}, [](std::shared_ptr<Connection>) {});
  ASSERT_TRUE(door.is_ok());
  client_->connect({"other", 2}, 5'000, [this](auto result) {
    connected_ = result.status();
    ++connect_answers_;
  });
  loop_.run_for(100);
  EXPECT_EQ(connect_answers_, 0);
  network_.exit("other");
  loop_.run_for(1);
  EXPECT_EQ(connected_.code(), Code::kUnavailable);
  loop_.run_for(10'000);
  EXPECT_EQ(connect_answers_, 1);
}

}  // namespace
}  // namespace lockstep::rpc
