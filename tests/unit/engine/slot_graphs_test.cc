// Slots as graphs give the bits of eager slots, whatever changes from slot to slot; where there can
// be no graph, slots are eager. The recordings of plain_recorder.h fail the test where a graph
// would have frozen a value.
#include "worker/torch/device/slot_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/engine/plain_recorder.h"
#include "worker/device/device_marks.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::even_runs;
using ::testing::HasSubstr;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::make_text;
using testing::PlainModule;
using testing::PlainRecorder;
using testing::small_job;
using testing::TrainResult;

constexpr Step kSteps = 26;  // of 5 an epoch: the short one's size is recorded in the fourth
constexpr uint64_t kBucketBytes = 4096;

// Modules that record, and outlive the world.
struct Devices {
  explicit Devices(uint32_t ranks) : own(ranks) {
    for (auto& module : own) {
      module = std::make_unique<PlainModule>();
      modules.push_back(module.get());
      recorders.push_back(&testing::add_recorder(*module));
    }
  }
  std::vector<std::unique_ptr<PlainModule>> own;
  std::vector<DeviceModule*> modules;
  std::vector<PlainRecorder*> recorders;
};

wire::JobSpec job_of(const std::string& model, const std::string& graph) {
  wire::JobSpec job = model == "gpt2" ? testing::small_gpt2(16) : small_job(model);
  job.mutable_train()->set_graph(graph);
  job.mutable_model()->set_dropout(0.25);
  job.mutable_model()->set_batch_norm(model == "cnn");
  job.mutable_optimizer()->set_clip_norm(0.5);
  return job;
}

std::unique_ptr<data::Dataset> data_of(const std::string& model) {
  return model == "gpt2" ? make_text(83, 16, 200) : make_patterns(83);
}

void expect_same(const TrainResult& got, const TrainResult& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.common_hashes, expected.common_hashes);
  EXPECT_TRUE(got.state == expected.state);
}

TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset, Devices& devices,
                  Step steps, bool connects_devices = false) {
  LoopbackWorld world(job, dataset,
                      even_runs(job.train().slots(), static_cast<uint32_t>(devices.own.size())),
                      kBucketBytes, nullptr, devices.modules);
  world.connects_devices = connects_devices;
  world.begin_generation(steps);
  return world.train_to(steps);
}

TrainResult train_eagerly(wire::JobSpec job, const data::Dataset& dataset, Step steps) {
  job.mutable_train()->set_graph("off");
  Devices one(1);
  TrainResult result = train(job, dataset, one, steps);
  EXPECT_EQ(one.recorders[0]->recordings, 0u);
  return result;
}

class Graphs : public ::testing::TestWithParam<const char*> {};

TEST_P(Graphs, TrainToTheBitsOfEagerSlotsWithTheShortStepRecordedAsWell) {
  const auto dataset = data_of(GetParam());
  const wire::JobSpec job = job_of(GetParam(), "on");
  const TrainResult expected = train_eagerly(job, *dataset, kSteps);
  for (const auto& [ranks, is_connected] :
       {std::pair(1u, false), std::pair(2u, false), std::pair(2u, true)}) {
    SCOPED_TRACE(::testing::Message() << ranks << " ranks" << (is_connected ? ", connected" : ""));
    Devices devices(ranks);
    expect_same(train(job, *dataset, devices, kSteps, is_connected), expected);
    for (const PlainRecorder* recorder : devices.recorders) {
      EXPECT_EQ(recorder->recordings, kMostGraphs);
      EXPECT_GT(recorder->replays, kSteps);
      EXPECT_GE(recorder->made_current, kSteps);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Graphs, ::testing::Values("mlp", "cnn", "gpt2"),
                         [](const auto& c) { return std::string(c.param); });

// A rank with one slot a step, and one with several, in worlds of other sizes.
TEST(SlotGraphs, OfOneSlotAStepWriteTheRegionItselfAndOthersAreCopied) {
  const auto dataset = make_patterns(80);
  for (const auto& [ranks, slots, copies] :
       {std::tuple(1u, 1u, false), std::tuple(4u, 4u, false), std::tuple(2u, 4u, true)}) {
    SCOPED_TRACE(::testing::Message() << ranks << " ranks, " << slots << " slots");
    wire::JobSpec job = job_of("mlp", "on");
    job.mutable_train()->set_slots(slots);
    const TrainResult expected = train_eagerly(job, *dataset, kSteps);
    Devices devices(ranks);
    LoopbackWorld world(job, *dataset, even_runs(slots, ranks), kBucketBytes, nullptr,
                        devices.modules);
    world.connects_devices = ranks > 1;
    world.begin_generation(kSteps);
    world.train_to(kSteps - 1);
    for (const auto& module : devices.own) module->copied_gradients = 0;
    expect_same(world.train_to(kSteps), expected);
    for (const auto& module : devices.own) EXPECT_EQ(module->copied_gradients > 0, copies);
  }
}

TEST(SlotGraphs, FollowSharesOfMixedImagesThatAreOthersInEverySlot) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = job_of("cnn", "on");
  for (const char* word : {"mixup=0.4", "cutmix"}) job.mutable_data()->add_transforms(word);
  const TrainResult expected = train_eagerly(job, *dataset, kSteps);
  for (const uint32_t ranks : {1u, 2u}) {
    Devices devices(ranks);
    expect_same(train(job, *dataset, devices, kSteps), expected);
    EXPECT_EQ(devices.recorders[0]->recordings, kMostGraphs);
  }
}

TEST(SlotGraphs, HoldTheCastsOfFp8) {
  const auto dataset = data_of("gpt2");
  wire::JobSpec job = job_of("gpt2", "on");
  job.mutable_train()->set_precision("fp8");
  const TrainResult expected = train_eagerly(job, *dataset, kSteps);
  Devices devices(2);
  expect_same(train(job, *dataset, devices, kSteps), expected);
  EXPECT_EQ(devices.recorders[0]->recordings, kMostGraphs);
}

TEST(SlotGraphs, HoldPackedDocumentsButNotPaddedOnes) {
  const auto documents = testing::make_documents(400, 20);
  wire::JobSpec job = job_of("gpt2", "on");
  job.mutable_model()->set_block(64);
  const auto packs = testing::packed(documents, 64);
  const TrainResult expected = train_eagerly(job, *packs, kSteps);
  Devices devices(2);
  expect_same(train(job, *packs, devices, kSteps), expected);
  EXPECT_GE(devices.recorders[0]->recordings, 1u);

  job.mutable_data()->set_documents("pad");
  Devices eager(1);
  train(job, *testing::padded(documents, 64), eager, 8);
  EXPECT_EQ(eager.recorders[0]->recordings, 0u);
}

TEST(SlotGraphs, FollowALossScaleThatChanges) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp", "fp16");
  job.mutable_train()->set_graph("on");
  job.mutable_train()->set_loss_scale(0x1p40);  // beyond what fp16 holds
  job.mutable_train()->set_loss_scale_backoff(0x1p-12);
  job.mutable_train()->set_loss_scale_growth_every(2);
  const TrainResult expected = train_eagerly(job, *dataset, 12);
  for (const uint32_t ranks : {1u, 2u}) {
    Devices devices(ranks);
    expect_same(train(job, *dataset, devices, 12), expected);
    EXPECT_EQ(devices.recorders[0]->recordings, 1u);
  }
}

TEST(SlotGraphs, OutliveAGenerationAndItsPlanOfBuckets) {
  const auto dataset = make_patterns(80);
  const wire::JobSpec job = job_of("cnn", "on");
  const TrainResult expected = train_eagerly(job, *dataset, 12);
  for (const bool is_connected : {false, true}) {
    Devices devices(2);
    LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, nullptr, devices.modules);
    world.connects_devices = is_connected;
    world.begin_generation(12);
    world.train_to(4);
    for (const uint64_t bytes : {kBucketBytes, 512ul, 0ul}) {
      world.bucket_bytes = bytes;
      world.begin_generation(12);
      world.train_to(world.engine(0).applied_steps() + 2);
    }
    world.connects_devices = !is_connected;
    world.begin_generation(12);
    expect_same(world.train_to(12), expected);
    for (const PlainRecorder* recorder : devices.recorders) EXPECT_EQ(recorder->recordings, 1u);
  }
}

TEST(SlotGraphs, AreAtMostTwo) {
  const auto dataset = make_patterns(83);
  wire::JobSpec job = job_of("mlp", "on");
  job.mutable_train()->set_slots(3);  // of 6, 7 and 7 samples; of 1 in the short step
  const TrainResult expected = train_eagerly(job, *dataset, kSteps);
  Devices devices(1);
  expect_same(train(job, *dataset, devices, kSteps), expected);
  EXPECT_EQ(devices.recorders[0]->recordings, kMostGraphs);
}

// Its batches are larger than slots, so it outgrows what the loss has reserved.
TEST(SlotGraphs, OutliveAnEvaluation) {
  const auto dataset = make_patterns(80);
  const auto eval = make_patterns(101);
  const wire::JobSpec job = job_of("cnn", "on");
  const TrainResult expected = train_eagerly(job, *dataset, 8);
  Devices devices(2);
  LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, eval.get(), devices.modules);
  world.begin_generation(8);
  world.train_to(4);
  for (const auto& report : world.evaluate_all())
    EXPECT_TRUE(report.is_ok()) << report.status().message();
  expect_same(world.train_to(8), expected);
  EXPECT_EQ(devices.recorders[0]->recordings, 1u);
}

TEST(SlotGraphs, ThatCannotBeRecordedAreTriedOnceAndEverythingRunsEagerly) {
  const auto dataset = make_patterns(83);
  const wire::JobSpec job = job_of("cnn", "on");
  const TrainResult expected = train_eagerly(job, *dataset, 8);
  for (const bool throws : {false, true}) {
    SCOPED_TRACE(throws ? "in the middle of backward" : "at its end");
    Devices devices(1);
    devices.recorders[0]->fails = !throws;
    devices.recorders[0]->throws = throws;
    LoopbackWorld world(job, *dataset, even_runs(4, 1), kBucketBytes, nullptr, devices.modules);
    world.begin_generation(8);
    expect_same(world.train_to(8), expected);
    EXPECT_EQ(devices.recorders[0]->recordings, 1u);
    EXPECT_EQ(devices.recorders[0]->replays, 0u);
    ASSERT_EQ(world.notes.size(), 1u);
    EXPECT_THAT(world.notes[0], Says("CUDA graphs"));
    EXPECT_THAT(world.notes[0],
                HasSubstr(throws ? "the stream is gone" : "the capture was invalidated"));
  }
}

// The memory for a recording is asked for when LibTorch's cache holds all that was left.
TEST(SlotGraphs, TakeMemoryThatLibTorchGivesBackOrRunEagerly) {
  const auto dataset = make_patterns(80);
  const wire::JobSpec job = job_of("cnn", "on");
  const TrainResult expected = train_eagerly(job, *dataset, 6);
  for (const bool is_cached : {true, false}) {
    SCOPED_TRACE(is_cached ? "in LibTorch's cache" : "nowhere");
    Devices devices(2);
    LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, nullptr, devices.modules);
    world.begin_generation(6);
    world.train_to(1);  // two slots each; the fourth is recorded
    for (const auto& module : devices.own) {
      module->bytes_left = 0;
      module->cached_by_torch = is_cached ? uint64_t{1} << 30 : 0;
    }
    expect_same(world.train_to(6), expected);
    for (const PlainRecorder* recorder : devices.recorders)
      EXPECT_EQ(recorder->replays > 0, is_cached);
    ASSERT_EQ(world.notes.size(), is_cached ? 0u : 1u);
    if (!is_cached) {
      EXPECT_THAT(world.notes[0], AllOf(Says("CUDA graphs"), Says("memory")));
    }
  }
}

// Returns the marks for which the lane of gradients was held in the last step.
std::vector<uint32_t> marks_of_a_step(const std::string& graph, uint32_t ranks, bool is_connected) {
  const auto dataset = make_patterns(80);
  Devices devices(ranks);
  wire::JobSpec job = job_of("cnn", graph);
  job.mutable_train()->set_slots(ranks);
  LoopbackWorld world(job, *dataset, even_runs(ranks, ranks), kBucketBytes, nullptr,
                      devices.modules);
  world.connects_devices = is_connected;
  world.begin_generation(6);
  world.train_to(5);
  devices.own[0]->gradients_held.clear();
  world.train_to(6);
  return devices.own[0]->gradients_held;
}

// After the whole graph, no backward would be left to overlap with.
TEST(SlotGraphs, LetEachBucketLeaveAtItsOwnMark) {
  for (const auto& [ranks, is_connected] : {std::pair(2u, false), std::pair(2u, true)}) {
    SCOPED_TRACE(is_connected);
    std::vector<uint32_t> expected = marks_of_a_step("off", ranks, is_connected);
    ASSERT_GE(expected.size(), 3u);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(expected[i], kBackwardReached);
      if (i + 1 < expected.size()) expected[i] = static_cast<uint32_t>(kFirstRecorded + i);
    }
    EXPECT_EQ(marks_of_a_step("on", ranks, is_connected), expected);
  }
}

TEST(SlotGraphs, GiveTheGradientThatIsCompared) {
  const auto dataset = make_patterns(80);
  const auto reports = [&](const std::string& graph) {
    wire::JobSpec job = job_of("cnn", graph);
    job.mutable_train()->set_check_every(2);
    job.mutable_comm()->set_numerics("exact");
    Devices devices(4);
    LoopbackWorld world(job, *dataset, even_runs(4, 4), kBucketBytes, nullptr, devices.modules);
    world.begin_generation(12);
    std::vector<std::string> found;
    for (Step step = 0; step < 12; ++step) {
      for (const auto& outcome : world.step_all()) {
        EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
        if (outcome.is_ok() && outcome->check) found.push_back(outcome->check->SerializeAsString());
      }
    }
    return found;
  };
  const auto eager = reports("off");
  EXPECT_EQ(eager.size(), 28u);
  EXPECT_EQ(reports("on"), eager);
}

// cuDNN's is quicker, and has other bits.
TEST(SlotGraphs, RecordCudnnsBatchNormInFastModeOnly) {
  const auto dataset = make_patterns(80);
  for (const bool is_fast : {false, true}) {
    wire::JobSpec job = job_of("cnn", "on");
    job.mutable_comm()->set_numerics(is_fast ? "fast" : "exact");
    Devices devices(1);
    train(job, *dataset, devices, 2);
    uint32_t batch_norms = 0;
    for (const std::string& line : devices.recorders[0]->first) {
      if (!line.starts_with("aten::batch_norm ")) continue;
      ++batch_norms;
      EXPECT_THAT(line, ::testing::EndsWith(is_fast ? " True" : " False"));  // cudnn_enabled
    }
    EXPECT_GT(batch_norms, 0u);
  }
}

class GraphsOf : public ::testing::Test {
 protected:
  // Returns what is decided for a small mlp with these settings.
  GraphChoice choice(const std::string& graph, const std::string& numerics) {
    job_.mutable_train()->set_graph(graph);
    job_.mutable_comm()->set_numerics(numerics);
    return choose_graphs(job_, queue_);
  }

  wire::JobSpec job_ = small_job("mlp");
  PlainModule module_;
  PlainRecorder recorder_{module_};
  const TorchQueue* queue_ = &recorder_;
};

TEST_F(GraphsOf, BuiltInModelsAreRecordedInFastModeAndOnDemand) {
  EXPECT_TRUE(choice("auto", "fast").wanted);
  EXPECT_FALSE(choice("auto", "exact").wanted);
  EXPECT_TRUE(choice("on", "exact").wanted);
  for (const char* numerics : {"fast", "exact"}) EXPECT_FALSE(choice("off", numerics).wanted);
}

TEST_F(GraphsOf, WhatCannotBeAGraphRunsEagerlyAndIsToldToWhomAskedForOne) {
  const auto expect_no = [&](const std::string& why) {
    EXPECT_FALSE(choice("auto", "fast").wanted);
    EXPECT_EQ(choice("auto", "fast").why_not, "");
    EXPECT_FALSE(choice("on", "fast").wanted);
    EXPECT_THAT(choice("on", "fast").why_not, HasSubstr(why));
  };
  for (const char* model : {"torchscript", "plugin"}) {
    job_.mutable_model()->set_name(model);
    expect_no("model from a file");
  }
  job_.mutable_model()->set_name("mlp");
  job_.mutable_model()->set_dropout(0.1);
  job_.mutable_train()->set_precision("fp16");
  expect_no("dropout in fp16");
  job_.mutable_train()->set_precision("bf16");
  EXPECT_TRUE(choice("on", "fast").wanted);
  queue_ = nullptr;
  expect_no("records no graphs");
}

}  // namespace
}  // namespace lockstep
