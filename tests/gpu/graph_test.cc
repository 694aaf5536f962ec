// Slots as CUDA graphs on a GPU: the bits of eager slots, in exact mode, whatever changes from slot
// to slot. Exact mode may take graphs by default only once these have passed on the GPU at hand.
#include <gtest/gtest.h>

#include <string>

#include "tests/gpu/gpu_world.h"

namespace lockstep {
namespace {

using testing::data_of;
using testing::Devices;
using testing::even_runs;
using testing::job_of;
using testing::LoopbackWorld;
using testing::OnGpu;
using testing::TrainResult;

constexpr Step kManySteps = 26;  // both sizes of slots are recorded, and replayed

// In two generations, with buckets of another size in the second.
TrainResult train(wire::JobSpec job, const data::Dataset& dataset, const std::string& graph,
                  uint32_t ranks, uint64_t bucket_bytes = testing::kBucketBytes) {
  job.mutable_train()->set_graph(graph);
  const Devices devices(ranks);
  LoopbackWorld world(job, dataset, even_runs(4, ranks), bucket_bytes, nullptr, devices.modules);
  world.begin_generation(kManySteps);
  world.train_to(12);
  world.bucket_bytes *= 2;
  world.begin_generation(kManySteps);
  const TrainResult result = world.train_to(kManySteps);
  EXPECT_TRUE(world.notes.empty()) << world.notes.front();
  return result;
}

class Graphs : public OnGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(Graphs, GiveTheBitsOfEagerSlots) {
  const auto dataset = data_of(GetParam());
  const wire::JobSpec job = job_of(GetParam());
  const TrainResult eager = train(job, *dataset, "off", 1);
  for (const uint32_t ranks : {1u, 2u}) {
    SCOPED_TRACE(ranks);
    const TrainResult replayed = train(job, *dataset, "on", ranks);
    EXPECT_EQ(replayed.losses, eager.losses);
    EXPECT_TRUE(replayed.state == eager.state);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Graphs, ::testing::Values("mlp", "cnn", "resnet18", "gpt2"),
                         [](const auto& c) { return std::string(c.param); });

class GraphsInShortTypes : public OnGpu, public ::testing::WithParamInterface<const char*> {};

// In fp16 with a loss scale that overflows, falls and grows.
TEST_P(GraphsInShortTypes, GiveTheBitsOfEagerSlots) {
  const auto dataset = data_of("gpt2");
  wire::JobSpec job = job_of("gpt2");
  job.mutable_model()->set_dropout(GetParam() == std::string("bf16") ? 0.1 : 0);
  job.mutable_train()->set_precision(GetParam());
  job.mutable_train()->set_loss_scale(0x1p40);
  job.mutable_train()->set_loss_scale_backoff(0x1p-12);
  job.mutable_train()->set_loss_scale_growth_every(2);
  const TrainResult eager = train(job, *dataset, "off", 2);
  const TrainResult replayed = train(job, *dataset, "on", 2);
  EXPECT_EQ(replayed.losses, eager.losses);
  EXPECT_TRUE(replayed.state == eager.state);
}

INSTANTIATE_TEST_SUITE_P(Types, GraphsInShortTypes, ::testing::Values("bf16", "fp16"),
                         [](const auto& c) { return std::string(c.param); });

// Backward is long here, and the copies of its first buckets short: one that does not wait for its
// mark inside the graph takes gradients of the slot before.
TEST_F(OnGpu, ABucketLeavesAGraphOnlyWhenItsGradientsAreThere) {
  wire::JobSpec job = job_of("gpt2");
  job.mutable_model()->set_n_layer(8);
  job.mutable_model()->set_n_embd(512);
  job.mutable_model()->set_n_head(8);
  job.mutable_train()->set_global_batch(32);
  const auto dataset = data_of("gpt2");
  const TrainResult eager = train(job, *dataset, "off", 2, 1 << 20);
  const TrainResult replayed = train(job, *dataset, "on", 2, 1 << 20);
  EXPECT_EQ(replayed.losses, eager.losses);
  EXPECT_TRUE(replayed.state == eager.state);
}

}  // namespace
}  // namespace lockstep
