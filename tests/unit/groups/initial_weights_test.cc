// The engine reads model.init when its state is the state of step 0, and only then.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/state_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/groups/float_tensors.h"
#include "tests/unit/weights/weight_writer.h"
#include "worker/model/weights/load_weights.h"

namespace lockstep {
namespace {

using testing::make_engine;
using testing::make_patterns;
using testing::small_job;

// A file with the state of an engine of another seed.
std::string write_weights(const TemporaryDirectory& directory, const data::Dataset& dataset) {
  wire::JobSpec other = small_job("mlp");
  other.set_seed(99);
  const auto engine = make_engine(other, dataset).value();
  std::map<std::string, testing::WrittenTensor> tensors;
  for (const StateTensor& tensor : testing::state_of(*engine))
    if (tensor.section == StateSection::kParameter)
      tensors[tensor.name] = {
          "F32", tensor.shape, {reinterpret_cast<const char*>(tensor.data), tensor.bytes}};
  write_file(directory.path("w.safetensors"), testing::weights_file(tensors));
  return directory.path("w.safetensors");
}

TEST(InitialWeights, AStateOfStep0HasThemAndOnlyThatReadsTheFile) {
  const TemporaryDirectory directory;
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_model()->set_init(write_weights(directory, *dataset));
  const auto engine = make_engine(job, *dataset).value();
  EXPECT_FALSE(engine->is_afresh());
  EXPECT_EQ(engine->initial_weights(), nullptr);
  ASSERT_TRUE(engine->start_afresh().is_ok());
  EXPECT_TRUE(engine->is_afresh());
  ASSERT_NE(engine->initial_weights(), nullptr);
  EXPECT_EQ(engine->initial_weights()->count(WeightFate::kRead), 6u);
  wire::JobSpec other = small_job("mlp");
  other.set_seed(99);
  EXPECT_TRUE(testing::state_bytes(*engine, false) ==
              testing::state_bytes(*make_engine(other, *dataset).value(), false));

  job.mutable_model()->set_init(directory.path("gone.safetensors"));
  const auto resumed = make_engine(job, *dataset);
  ASSERT_TRUE(resumed.is_ok()) << resumed.status().message();
  ASSERT_TRUE((*resumed)->install_state(testing::state_of(**resumed), 7).is_ok());
  EXPECT_THAT((*resumed)->start_afresh(), FailsWith(Code::kNoInput, Names("gone.safetensors")));
}

TEST(InitialWeights, TheAverageBeginsWithThem) {
  const TemporaryDirectory directory;
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_train()->set_ema(0.99);
  job.mutable_model()->set_init(write_weights(directory, *dataset));
  const auto engine = make_engine(job, *dataset).value();
  ASSERT_TRUE(engine->start_afresh().is_ok());
  const testing::FloatTensors state = testing::floats_of(*engine);
  EXPECT_EQ(state.at("ema.fc1.weight").values, state.at("fc1.weight").values);
}

TEST(InitialWeights, OtherContentThanTheRunsIsRefused) {
  const TemporaryDirectory directory;
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_model()->set_init(write_weights(directory, *dataset));
  job.mutable_model()->set_init_sha256(std::string(64, 'a'));
  const auto engine = make_engine(job, *dataset).value();
  EXPECT_THAT(engine->start_afresh(),
              FailsWith(Code::kUsage, Names("w.safetensors"), Says("SHA-256")));
}

}  // namespace
}  // namespace lockstep
