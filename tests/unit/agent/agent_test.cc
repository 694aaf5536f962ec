#include "deploy/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "comm/base/limits.h"
#include "comm/rpc/client.h"
#include "tests/unit/agent/agent_world.h"

namespace lockstep {
namespace {

using testing::Contains;
using testing::Not;

TEST_F(AgentTest, AKilledWorkerIsToldAndReplacedAndBothAreToldAgainToACoordinatorThatComesBack) {
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  EXPECT_EQ(hello.workers(), 2u);
  ASSERT_EQ(hello.living_size(), 2);
  const uint32_t victim = hello.living(0);
  ::kill(static_cast<pid_t>(victim), SIGKILL);
  const wire::WorkerExit exit = next().worker_exit();
  EXPECT_EQ(exit.pid(), victim);
  EXPECT_EQ(exit.signal(), SIGKILL);
  EXPECT_TRUE(exit.will_restart());

  server_->disconnect(peer_);
  const wire::AgentHello again = next().agent_hello();
  EXPECT_EQ(again.living_size(), 2) << "another one is there, under another pid";
  EXPECT_THAT(again.living(), Not(Contains(victim)));
  EXPECT_EQ(next().worker_exit().pid(), victim);
}

TEST_F(AgentTest, ItsMetricsAreAtOneAddressForAllCoordinators) {
  start_agent();
  const std::string address = next().agent_hello().metrics_address();
  EXPECT_TRUE(rpc::parse_address(address).is_ok()) << address;
  server_->disconnect(peer_);
  EXPECT_EQ(next().agent_hello().metrics_address(), address);
}

TEST_F(AgentTest, MoreWorkersAreStartedWhenMoreAreWanted) {
  start_agent();
  next();
  say_workers(4);
  pump_until([this] {
    const auto words = read_file(directory_ + "/logs/worker-3.stderr", 4096);
    return words.is_ok() && words->find("--local-rank 3") != std::string::npos;
  });
  server_->disconnect(peer_);
  const wire::AgentHello hello = next().agent_hello();
  EXPECT_EQ(hello.workers(), 4u);
  EXPECT_EQ(hello.living_size(), 4);
}

TEST_F(AgentTest, AStoppedWorkerThatItIsToldToKillIsReplacedAndNobodyElseIsKilled) {
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  const auto stopped = static_cast<pid_t>(hello.living(0));
  ::kill(stopped, SIGSTOP);
  order_to_kill(static_cast<uint32_t>(::getpid()));  // no worker of its own; heard first
  order_to_kill(hello.living(0));
  const wire::WorkerExit exit = next().worker_exit();
  EXPECT_EQ(exit.pid(), hello.living(0));
  EXPECT_EQ(exit.signal(), SIGKILL);
  EXPECT_TRUE(exit.will_restart());
  server_->disconnect(peer_);
  const wire::AgentHello again = next().agent_hello();
  EXPECT_EQ(again.living_size(), 2);
  EXPECT_THAT(again.living(), Contains(hello.living(1)));
}

TEST_F(AgentTest, AWorkerWithoutRestartsLeftIsReportedAndTheAgentStaysUntilGoodbye) {
  options_.workers = 1;
  options_.max_crashes = 0;
  start_agent();
  ::kill(static_cast<pid_t>(next().agent_hello().living(0)), SIGKILL);
  EXPECT_FALSE(next().worker_exit().will_restart());
  EXPECT_EQ(end_with(70), 70);
}

TEST_F(AgentTest, ToldToStopItGoesWithItsLastWorkerThoughTheRunGoesOn) {
  options_.leave_ms = 600'000;  // longer than this test waits for anything
  options_.stopped_wait_ms = 20;
  start_agent();
  next();
  wire::Envelope stop;
  stop.mutable_stop()->set_reason("its node is wanted elsewhere");
  server_->send(peer_, stop);
  join();
  ASSERT_EQ(heard_.size(), 2u);
  for (const wire::Envelope& envelope : heard_)
    EXPECT_FALSE(envelope.worker_exit().will_restart()) << envelope.ShortDebugString();
}

TEST_F(AgentTest, OneThatNeverReachedTheCoordinatorEndsWhenItHearsThatThatOneHasEnded) {
  server_.reset();
  options_.absent_wait_ms = 600'000;
  start_agent();
  pump_until([this] { return read_file(directory_ + "/logs/worker-1.stderr", 65'536).is_ok(); });
  ::pthread_kill(thread_.native_handle(), SIGUSR2);
  join();
}

TEST_F(AgentTest, OneThatMissedTheEndEndsWhenItHearsOfIt) {
  start_agent();
  next();
  server_.reset();
  ::pthread_kill(thread_.native_handle(), SIGUSR2);
  join();
}

TEST_F(AgentTest, OneThatIsConnectedGoesOnWhenItHearsThatACoordinatorHasEnded) {
  start_agent();
  next();
  ::pthread_kill(thread_.native_handle(), SIGUSR2);
  say_workers(3);
  pump_until([this] { return read_file(directory_ + "/logs/worker-2.stderr", 65'536).is_ok(); });
  EXPECT_EQ(end_with(0), 0);
}

TEST_F(AgentTest, GoodbyeEndsItWithItsCodeAndNoWorkerStays) {
  start_agent();
  const wire::AgentHello hello = next().agent_hello();
  EXPECT_EQ(end_with(75), 75);
  for (const uint32_t pid : hello.living())
    EXPECT_NE(::kill(static_cast<pid_t>(pid), 0), 0) << pid << " is still there";
}

// The coordinator may die before it prints the reason itself.
TEST_F(AgentTest, TheReasonOfAFailureIsOnItsConsole) {
  EXPECT_NE(console_at_end_with(70).find("journal.db is full"), std::string::npos);
}

TEST_F(AgentTest, TheReasonOfAStopIsNotOnItsConsole) {
  EXPECT_EQ(console_at_end_with(75).find("journal.db is full"), std::string::npos);
}

TEST_F(AgentTest, AWorkerThatWasJustStartedMayEndAsTheRunDoes) {
  ASSERT_TRUE(replace_file(directory_ + "/worker",
                           "#!/bin/sh\ncd \"${0%/*}\"\n"
                           "until [ -e may_end ]; do sleep 0.01; done\ntouch has_ended\n",
                           0755)
                  .is_ok());
  auto log = open_json_logger(directory_ + "/log", "agent", false);
  ASSERT_TRUE(log.is_ok());
  logger_ = std::move(log).value();
  options_.workers = 1;
  options_.leave_ms = 600'000;
  start_agent();
  next();
  wire::Envelope goodbye;
  goodbye.mutable_goodbye()->set_exit_code(0);
  server_->send(peer_, goodbye);
  pump_until([this] {
    const auto lines = read_file(directory_ + "/log", 65'536);
    return lines.is_ok() && lines->find("goodbye") != std::string::npos;
  });
  ASSERT_TRUE(replace_file(directory_ + "/may_end", "").is_ok());
  join();
  EXPECT_TRUE(read_file(directory_ + "/has_ended", 1).is_ok()) << "the worker was killed";
}

// A script may run code after its loop for longer than an agent looks for a coordinator in silence.
TEST_F(AgentTest, ACoordinatorThatHasSaidGoodbyeIsNotMissed) {
  auto log = open_json_logger(directory_ + "/log", "agent", false);
  ASSERT_TRUE(log.is_ok());
  logger_ = std::move(log).value();
  std::atomic<int> complaints = 0;
  options_.tell = [&](const std::string&) { ++complaints; };
  options_.workers = 1;
  options_.leave_ms = rpc::RpcClient::kTroubleMs + 2'000;
  start_agent();
  next();
  const int64_t is_old_ms =
      loop_.now_ms() + limits::kQuickDeathMs + 100;  // else it is killed early
  pump_until([&] { return loop_.now_ms() > is_old_ms; });
  wire::Envelope envelope;
  envelope.mutable_goodbye()->set_exit_code(0);
  server_->send(peer_, envelope);
  pump_until([this] {
    const auto words = read_file(directory_ + "/log", 65'536);
    return words.is_ok() && words->find("goodbye") != std::string::npos;
  });
  server_.reset();
  EXPECT_EQ(join(), 0);
  EXPECT_EQ(complaints.load(), 0);
  const auto words = read_file(directory_ + "/log", 65'536);
  EXPECT_EQ(words->find("coordinator_unreachable"), std::string::npos) << *words;
}

}  // namespace
}  // namespace lockstep
