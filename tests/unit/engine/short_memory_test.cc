// A device whose memory was too short for something in a slot that was computed all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/plain_recorder.h"

namespace lockstep {
namespace {

// cuDNN takes its next algorithm if there is no memory for the first, and says nothing.
TEST(ShortMemory, OfASlotThatWentOnIsAnErrorIfSumsAreExact) {
  const auto dataset = testing::make_patterns(80);
  for (const char* numerics : {"exact", "fast"}) {
    SCOPED_TRACE(numerics);
    wire::JobSpec job = testing::small_job("mlp");
    job.mutable_comm()->set_numerics(numerics);
    testing::PlainModule module;
    testing::PlainRecorder& queue = testing::add_recorder(module);
    testing::LoopbackWorld world(job, *dataset, testing::even_runs(4, 1), 0, nullptr, {&module});
    world.begin_generation(3);
    world.train_to(1);
    queue.is_short = true;
    const Status status = world.step_all()[0].status();
    if (job.comm().numerics() == "fast") {
      EXPECT_EQ(status, Status::ok());
    } else {
      EXPECT_THAT(status, FailsWith(Code::kNoMemory, Says("memory"), Advises("train.slots")));
    }
  }
}

}  // namespace
}  // namespace lockstep
