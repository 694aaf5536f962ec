// The server with real frames, authentication and sessions over a network in memory: fake members
#include "tests/unit/coordinator/server_world.h"

namespace lockstep::coordinator {
namespace {

TEST_F(ServerTest, TwoMembersTrainAndTheRunEndsWithASummary) {
  auto a = member(0);
  auto b = member(1);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(a->goodbye_code, 0u);
  EXPECT_EQ(b->goodbye_code, 0u);
  EXPECT_EQ(history_lines(), options_.total_steps);
  EXPECT_EQ(summary()["steps"], options_.total_steps);
  EXPECT_EQ(summary()["weights_sha256"], "w");
  EXPECT_EQ(summary()["generations"], 1);
  EXPECT_EQ(summary()["samples_per_second"], 2000.0);
  EXPECT_EQ(summary()["exit_code"], 0);
}

TEST_F(ServerTest, TheStatusNamesMembersStepAndState) {
  auto a = member(0);
  a->leaves = false;
  EXPECT_EQ(status()["state"], "gathering");
  auto b = member(1);
  b->leaves = false;
  loop_.run_for(2'000);
  EXPECT_EQ(status()["state"], "training");
  EXPECT_EQ(status()["step"], 4);
  EXPECT_EQ(status()["members"].size(), 2u);
  EXPECT_EQ(status()["members"][1]["pid"], 1001);
  EXPECT_TRUE(server_->is_ready());
  EXPECT_NE(server_->metrics().find("lockstep_job_"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(server_->discovery("127.0.0.1:1")).at(0)["targets"][0],
            "127.0.0.1:1");
}

TEST_F(ServerTest, WhatTheRunIsToDoIsAmongTheMetricsAndEvictionsBeginAtZero) {
  const std::string text = server_->metrics();
  EXPECT_NE(text.find("lockstep_job_workers_wanted{run=\"test\"} 2"), std::string::npos);
  EXPECT_NE(text.find("reason=\"regrouped\"} 0"), std::string::npos);
}

TEST_F(ServerTest, ABrokenConnectionIsNoDeathWhenTheMemberComesBack) {
  auto a = member(0);
  auto b = member(1);
  b->leaves = false;
  loop_.run_for(1'000);
  ASSERT_EQ(b->starts, 1u);
  EXPECT_EQ(network_.cut("w1", "coordinator"), 1u);
  loop_.run_for(1'000);
  EXPECT_EQ(b->starts, 2u);  // the same start, pushed again
  EXPECT_FALSE(ended_.has_value());
}

TEST_F(ServerTest, ACrashedMemberLeavesTheOtherInANewGeneration) {
  auto a = member(0);
  auto b = member(1);
  a->leaves = b->leaves = false;
  loop_.run_for(1'000);
  network_.partition("w1", "coordinator");
  network_.crash("w1");
  ASSERT_TRUE(loop_.run_until([&] { return a->starts == 2; }, 60'000));
  EXPECT_EQ(status()["generation"], 2);
  EXPECT_EQ(history_lines(), options_.total_steps);
  EXPECT_FALSE(ended_.has_value());
  EXPECT_FALSE(term_end_.has_value());
}

TEST_F(ServerTest, AnAgentThatIsAwayWhenTheRunEndsIsToldWhenItComesBack) {
  FakeAgent agent(network_, server_->control_address());
  loop_.run_for(500);
  agent.knows_address = false;
  EXPECT_EQ(network_.cut("agent", "coordinator"), 1u);
  server_->stop("signal SIGTERM");
  loop_.run_for(100);
  EXPECT_FALSE(ended_.has_value());
  agent.knows_address = true;
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(agent.goodbye_code, 75u);
}

TEST_F(ServerTest, ATakeOverThatFindsTheRunAtItsEndWaitsForThoseOnTheirWay) {
  EarlierTerms earlier;
  earlier.is_take_over = true;
  serve(begin_state(first_term(), loop_.now_ms()), earlier);
  server_->stop("signal SIGTERM");
  loop_.run_for(1'000);
  EXPECT_FALSE(ended_.has_value());
  auto late = member(0);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(late->goodbye_code, 75u);
}

TEST_F(ServerTest, ALineageThatNobodyHoldsEndsTheTermAndNotTheRun) {
  auto a = member(0);
  auto b = member(1);
  a->leaves = b->leaves = false;
  a->keeps_state = false;
  loop_.run_for(1'000);
  network_.partition("w1", "coordinator");
  network_.crash("w1");
  ASSERT_TRUE(loop_.run_until([this] { return term_end_.has_value(); }, 60'000));
  loop_.run_for(10'000);
  EXPECT_FALSE(ended_.has_value());
  EXPECT_FALSE(a->goodbye_code.has_value());
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/summary.json"));

  // The next term of the same process, at the same address: the member is told what is now.
  Beginning next = second_term();
  next.generation = 9;
  next.next_member = 3;
  serve(begin_state(next, loop_.now_ms()), {}, address_);
  EXPECT_TRUE(loop_.run_until([this] { return status()["members"].size() == 1; }, 60'000));
  EXPECT_EQ(status()["term"], 2);
  EXPECT_EQ(status()["members"][0]["id"], 3);
}

TEST_F(ServerTest, NothingIsSentWhenTheCommitFailsAndTheCoordinatorStops) {
  auto a = member(0);
  a->listens_on = true;
  loop_.run_for(500);
  journal_.fail_from_now_on(Status(Code::kInternal, "the disk is full"));
  auto b = member(1);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(ended_, 70);
  EXPECT_EQ(a->prepares, 0u);  // it was decided in the turn whose commit failed
  EXPECT_EQ(a->goodbye_code, 70u);
  EXPECT_NE(summary()["message"].get<std::string>().find("the disk is full"), std::string::npos);
}

TEST_F(ServerTest, ACoordinatorThatIsSupersededCommitsNothingAndSaysNothing) {
  auto a = member(0);
  a->listens_on = true;
  loop_.run_for(500);
  const size_t members = journal_.load()->members.size();
  is_superseded_ = [] { return true; };
  auto b = member(1);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(ended_, 75);
  EXPECT_EQ(journal_.load()->members.size(), members);
  loop_.run_for(5'000);
  EXPECT_FALSE(a->goodbye_code.has_value()) << "it looks for the other coordinator";
  EXPECT_FALSE(b->goodbye_code.has_value());
  EXPECT_EQ(a->prepares, 0u);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/summary.json")) << "the other one writes that";
}

TEST_F(ServerTest, ACommitDuringWhichTheRunWasClaimedHasNoConsequences) {
  auto a = member(0);
  loop_.run_for(500);
  const uint64_t commits = journal_.commits();  // it was stopped for long in the next one
  is_superseded_ = [this, commits] { return journal_.commits() > commits; };
  auto b = member(1);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(ended_, 75);
  EXPECT_EQ(a->prepares, 0u);
  EXPECT_EQ(b->prepares, 0u);
}

TEST_F(ServerTest, ACoordinatorWithNothingToCommitStopsWhenItIsAsked) {
  loop_.run_for(500);
  EXPECT_FALSE(server_->end_if_superseded());
  is_superseded_ = [] { return true; };
  EXPECT_TRUE(server_->end_if_superseded());
  EXPECT_EQ(ended_, 75);
  EXPECT_TRUE(server_->end_if_superseded()) << "and once";
}

EarlierTerms trained(Step steps, uint64_t wall_us, int64_t wall_ms) {
  EarlierTerms earlier;
  earlier.wall_ms = wall_ms;
  for (Step step = 0; step < steps; ++step) {
    StepEntry entry;
    entry.generation = 1;
    entry.step = step;
    entry.samples = 4;
    entry.wall_us = wall_us;
    earlier.stats.add(entry);
  }
  return earlier;
}

TEST_F(ServerTest, SpeedAndTimeOfEarlierTermsAreInTheSummary) {
  serve(begin_state(first_term(), loop_.now_ms()), trained(100, 4000, 900'000));
  server_->stop("signal SIGTERM");
  ASSERT_TRUE(run_to_the_end());
  EXPECT_DOUBLE_EQ(summary()["samples_per_second"], 1000.0);
  EXPECT_GE(summary()["wall_seconds"], 900.0);
  EXPECT_NEAR(summary()["goodput"], 0.4 / 900, 1e-4);
}

TEST_F(ServerTest, ARunThatIsOverTellsWhoStillWaitsAndKeepsItsSummary) {
  State state = begin_state(first_term(), loop_.now_ms());
  state.run = RunState::kEnded;
  state.completed = 4;
  serve(state, trained(4, 4000, 1000));
  std::ofstream(dir_ + "/summary.json") << R"({"steps": 4, "exit_code": 0, "mark": 1})";
  ASSERT_TRUE(server_->keep_summary().is_ok());
  EXPECT_EQ(summary()["mark"], 1);
  std::ofstream(dir_ + "/summary.json") << R"({"steps": 3, "exit_code": 75, "mark": 1})";
  ASSERT_TRUE(server_->keep_summary().is_ok());
  EXPECT_EQ(summary()["steps"], 4);
  EXPECT_DOUBLE_EQ(summary()["samples_per_second"], 1000.0);
  auto late = member(0);
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(late->goodbye_code, 0u);
  EXPECT_EQ(ended_, 0);
}

TEST_F(ServerTest, ABeatReachesAllWhoAreThereAndNobodyWhenTheRunIsOver) {
  auto a = member(0);
  auto b = member(1);
  a->leaves = b->leaves = false;
  loop_.run_for(1'000);
  for (int i = 0; i < 2; ++i) server_->beat();
  loop_.run_for(1'000);
  EXPECT_EQ(a->beats, 2u);
  EXPECT_EQ(b->beats, 2u);
  EXPECT_FALSE(ended_.has_value());
  server_->stop("signal SIGTERM");
  ASSERT_TRUE(run_to_the_end());
  server_->beat();
  loop_.run_for(1'000);
  EXPECT_EQ(a->beats, 2u);
}

TEST_F(ServerTest, ASignalBeforeTheStartEndsWith75) {
  auto a = member(0);
  loop_.run_for(500);
  server_->stop("signal SIGTERM");
  ASSERT_TRUE(run_to_the_end());
  EXPECT_EQ(ended_, 75);
  EXPECT_EQ(a->goodbye_code, 75u);
}

}  // namespace
}  // namespace lockstep::coordinator
