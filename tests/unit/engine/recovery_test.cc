// Tests the state after an aborted step, and what a resume starts from.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::small_job;
using testing::state_bytes;
using testing::TrainResult;

constexpr Step kSteps = 9;  // of 5 an epoch: into the second

wire::JobSpec job_with_everything() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_dropout(0.25);
  job.mutable_model()->set_batch_norm(true);
  return job;
}

TrainResult undisturbed(const data::Dataset& dataset) {
  LoopbackWorld world(job_with_everything(), dataset, even_runs(4, 2));
  world.begin_generation(kSteps);
  return world.train_to(kSteps);
}

TEST(Recovery, AStepWhoseGateWasClosedChangesNothingAndIsRedoneToTheSameBits) {
  const auto dataset = make_patterns(83);
  const TrainResult expected = undisturbed(*dataset);
  // One rank, so that its own gate decides alone; all sums are there when it closes.
  LoopbackWorld world(job_with_everything(), *dataset, even_runs(4, 1));
  bool open = true;
  const auto gate = [&](uint32_t) {
    StepGate own;
    own.try_enter = [&] { return open; };
    return own;
  };
  world.begin_generation(kSteps, gate);
  world.train_to(6);
  const std::string before = state_bytes(world.engine(0), true);
  open = false;
  const auto outcomes = world.step_all();
  ASSERT_FALSE(outcomes[0].is_ok());
  EXPECT_EQ(outcomes[0].status().code(), Code::kAborted);
  EXPECT_TRUE(state_bytes(world.engine(0), true) == before);
  EXPECT_EQ(world.engine(0).applied_steps(), 6u);

  open = true;
  world.begin_generation(kSteps, gate);
  const TrainResult redone = world.train_to(kSteps);
  EXPECT_EQ(redone.losses, expected.losses);
  EXPECT_TRUE(redone.state == expected.state);
}

TEST(Recovery, AStepAbortedWhilePeersWaitIsRedoneToTheSameBits) {
  const auto dataset = make_patterns(83);
  const TrainResult expected = undisturbed(*dataset);
  for (const uint64_t bucket_bytes : {0u, 4096u}) {
    LoopbackWorld world(job_with_everything(), *dataset, even_runs(4, 2), bucket_bytes);
    world.begin_generation(kSteps);
    world.train_to(4);
    const std::string before = state_bytes(world.engine(0), true);
    // Rank 0 computes and waits for rank 1, which never comes.
    std::thread aborter([&] {
      while (world.engine(0).progress().step != 4) std::this_thread::yield();
      world.collective(1).abort();
    });
    const auto outcome = world.engine(0).step();
    aborter.join();
    ASSERT_FALSE(outcome.is_ok());
    EXPECT_EQ(outcome.status().code(), Code::kAborted);
    EXPECT_TRUE(state_bytes(world.engine(0), true) == before);

    world.begin_generation(kSteps);
    const TrainResult redone = world.train_to(kSteps);
    EXPECT_EQ(redone.losses, expected.losses);
    EXPECT_TRUE(redone.state == expected.state);
  }
}

TEST(Recovery, AStateCopiedIntoOtherEnginesGoesOnToTheSameBitsWithAnotherNumberOfRanks) {
  const auto dataset = make_patterns(83);
  const TrainResult expected = undisturbed(*dataset);
  LoopbackWorld first(job_with_everything(), *dataset, even_runs(4, 2));
  first.begin_generation(kSteps);
  std::vector<double> losses = first.train_to(3).losses;  // in the middle of an epoch

  LoopbackWorld second(job_with_everything(), *dataset, even_runs(4, 3));
  const auto source = testing::state_of(first.engine(0));
  for (uint32_t r = 0; r < second.ranks(); ++r)
    ASSERT_TRUE(second.engine(r).install_state(source, first.engine(0).applied_steps()).is_ok());
  second.begin_generation(kSteps);
  const TrainResult resumed = second.train_to(kSteps);
  losses.insert(losses.end(), resumed.losses.begin(), resumed.losses.end());
  EXPECT_EQ(losses, expected.losses);
  EXPECT_TRUE(resumed.state == expected.state);
}

}  // namespace
}  // namespace lockstep
