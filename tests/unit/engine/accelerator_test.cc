// The engine over a device with memory of its own gives the CPU's bits: nothing is forgotten on the
// way there and back (plain_module.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"
#include "tests/unit/engine/plain_module.h"

namespace lockstep {
namespace {

using testing::even_runs;
using ::testing::HasSubstr;
using testing::LoopbackWorld;
using testing::make_patterns;
using testing::make_text;
using testing::PlainModule;
using testing::small_job;
using testing::TrainResult;

constexpr Step kSteps = 9;  // of 5 an epoch: into the second
constexpr uint64_t kBucketBytes = 4096;

// The modules outlive the world.
struct Devices {
  explicit Devices(uint32_t ranks) : own(ranks) {
    for (auto& module : own) {
      module = std::make_unique<PlainModule>();
      modules.push_back(module.get());
    }
  }
  std::vector<std::unique_ptr<PlainModule>> own;
  std::vector<DeviceModule*> modules;
};

wire::JobSpec job_with_everything() {
  wire::JobSpec job = small_job("cnn");
  job.mutable_model()->set_dropout(0.25);
  job.mutable_model()->set_batch_norm(true);
  job.mutable_optimizer()->set_spare_vectors(true);
  job.mutable_optimizer()->set_clip_norm(0.5);
  return job;
}

TrainResult on_the_cpu(const wire::JobSpec& job, const data::Dataset& dataset, Step steps) {
  LoopbackWorld world(job, dataset, even_runs(job.train().slots(), 2), kBucketBytes);
  world.begin_generation(steps);
  return world.train_to(steps);
}

// A sum over transfers goes to plain memory, as its stage has; a fast one may be NCCL's window.
TEST(AcceleratorSums, OnlyFastOnesGoToMemoryThatPeersMayMap) {
  const auto dataset = make_patterns(64);
  for (const bool is_fast : {false, true}) {
    Devices devices(1);
    wire::JobSpec job = small_job("cnn");
    job.mutable_comm()->set_numerics(is_fast ? "fast" : "exact");
    LoopbackWorld world(job, *dataset, even_runs(job.train().slots(), 1), kBucketBytes, nullptr,
                        devices.modules);
    EXPECT_TRUE(world.engine(0).device_buffer().is_ok());
    EXPECT_EQ(devices.own[0]->allocated_for_peers, is_fast ? 1 : 0);
  }
}

TrainResult on_devices(const wire::JobSpec& job, const data::Dataset& dataset, Step steps,
                       uint32_t ranks) {
  Devices devices(ranks);
  LoopbackWorld world(job, dataset, even_runs(job.train().slots(), ranks), kBucketBytes, nullptr,
                      devices.modules);
  world.begin_generation(steps);
  return world.train_to(steps);
}

void expect_same(const TrainResult& got, const TrainResult& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  EXPECT_EQ(got.common_hashes, expected.common_hashes);
  EXPECT_TRUE(got.state == expected.state);
}

// Does what loading a checkpoint or receiving a state does.
void install(Engine& engine, const std::string& state, Step step) {
  const char* from = state.data();
  const std::vector<StateTensor> tensors = testing::state_of(engine);
  for (const StateTensor& tensor : tensors) {
    std::memcpy(tensor.data, from, tensor.bytes);
    from += tensor.bytes;
  }
  ASSERT_EQ(from, state.data() + state.size());
  ASSERT_TRUE(engine.install_state(tensors, step).is_ok());
}

TEST(Accelerator, TrainsToTheCpusBitsWithAnyNumberOfRanksThroughARestoreAndANewGeneration) {
  const auto dataset = make_patterns(83);
  const TrainResult expected = on_the_cpu(job_with_everything(), *dataset, kSteps);
  const TrainResult early = on_the_cpu(job_with_everything(), *dataset, 3);
  for (const uint32_t ranks : {1u, 2u, 4u}) {
    SCOPED_TRACE(ranks);
    Devices devices(ranks);
    LoopbackWorld world(job_with_everything(), *dataset, even_runs(4, ranks), kBucketBytes, nullptr,
                        devices.modules);
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(3).state == early.state);
    const std::string checkpoint = testing::state_bytes(world.engine(0), true);
    world.train_to(7);
    for (uint32_t r = 0; r < ranks; ++r) install(world.engine(r), checkpoint, 3);
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(5).state != expected.state);
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(kSteps).state == expected.state);
    for (uint32_t r = 0; r < ranks; ++r) ASSERT_TRUE(world.engine(r).start_afresh().is_ok());
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(3).state == early.state);
  }
}

TEST(Accelerator, TrainsWithEveryOptimizerToTheCpusBits) {
  const auto dataset = make_patterns(80);
  const auto check = [&](const char* name, double momentum, bool variant) {
    SCOPED_TRACE(std::string(name) + (variant ? " with its option" : ""));
    wire::JobSpec job = small_job("mlp");
    wire::OptimizerSpec* optimizer = job.mutable_optimizer();
    optimizer->set_name(name);
    optimizer->set_momentum(momentum);
    optimizer->set_nesterov(variant);
    optimizer->set_centered(variant);
    optimizer->set_alpha(0.99);
    optimizer->set_rho(0.9);
    optimizer->set_momentum_decay(0.004);
    expect_same(on_devices(job, *dataset, 4, 1), on_the_cpu(job, *dataset, 4));
  };
  for (const char* name : {"adam", "adamw", "nadam", "adagrad", "adadelta"}) check(name, 0, false);
  for (const char* name : {"sgd", "rmsprop"}) {
    check(name, 0, false);
    check(name, 0.9, false);
    check(name, 0.9, true);
  }
  check("rmsprop", 0, true);
}

TEST(Accelerator, MixesImagesToTheCpusBits) {
  const auto dataset = make_patterns(83);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"mixup=0.4"}, {"cutmix"}, {"mixup", "cutmix"}}) {
    SCOPED_TRACE(words.front());
    wire::JobSpec job = small_job("cnn");
    for (const std::string& word : words) job.mutable_data()->add_transforms(word);
    const TrainResult expected = on_the_cpu(job, *dataset, kSteps);
    for (const uint32_t ranks : {1u, 2u})
      expect_same(on_devices(job, *dataset, kSteps, ranks), expected);
  }
}

TEST(Accelerator, SkipsStepsThatOverflowAndScalesAsTheCpuDoes) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_train()->set_precision("fp16");
  job.mutable_train()->set_loss_scale(0x1p40);  // beyond what fp16 holds
  job.mutable_train()->set_loss_scale_growth(2);
  job.mutable_train()->set_loss_scale_backoff(0x1p-12);
  job.mutable_train()->set_loss_scale_growth_every(2);
  const TrainResult expected = on_the_cpu(job, *dataset, 8);
  int64_t skipped = 0;  // the state ends with it
  std::memcpy(&skipped, expected.state.data() + expected.state.size() - sizeof skipped,
              sizeof skipped);
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 8);
  for (const uint32_t ranks : {1u, 2u}) expect_same(on_devices(job, *dataset, 8, ranks), expected);
}

// No multiple of what logits are padded to.
constexpr uint32_t kVocabulary = 200;

// GPT-2's layers are kernels there, with bits of their own: any number of devices has the same, and
// they learn what the CPU learns.
TEST(Accelerator, TrainsOnTokensToTheSameBitsWithAnyNumberOfRanks) {
  const auto text = make_text(30, 16, kVocabulary);
  for (const auto& [precision, tolerance] : {std::pair("fp32", 1e-5), std::pair("bf16", 2e-2),
                                             std::pair("fp16", 2e-2), std::pair("fp8", 2e-2)}) {
    SCOPED_TRACE(precision);
    wire::JobSpec job = testing::small_gpt2(16);
    job.mutable_train()->set_precision(precision);
    job.mutable_model()->set_dropout(0.1);
    const TrainResult on_one = on_devices(job, *text, 5, 1);
    for (const uint32_t ranks : {2u, 4u}) expect_same(on_devices(job, *text, 5, ranks), on_one);
    const TrainResult on_cpu = on_the_cpu(job, *text, 5);
    for (size_t i = 0; i < on_cpu.losses.size(); ++i)
      EXPECT_NEAR(on_one.losses[i], on_cpu.losses[i], tolerance) << i;
  }
}

TEST(Accelerator, TrainsOnDocumentsToTheSameBitsWithAnyNumberOfRanks) {
  const auto documents = testing::make_documents(120, 30);
  for (const auto& dataset : {testing::packed(documents, 80), testing::padded(documents, 80)}) {
    SCOPED_TRACE(dataset->samples());
    const wire::JobSpec job = testing::small_gpt2(80);
    const TrainResult on_one = on_devices(job, *dataset, 4, 1);
    for (const uint32_t ranks : {2u, 4u}) expect_same(on_devices(job, *dataset, 4, ranks), on_one);
    const TrainResult on_cpu = on_the_cpu(job, *dataset, 4);
    for (size_t i = 0; i < on_cpu.losses.size(); ++i)
      EXPECT_NEAR(on_one.losses[i], on_cpu.losses[i], 1e-5) << i;
  }
}

TEST(Accelerator, EvaluatesTokensToWhatTheCpuFinds) {
  const auto text = make_text(30, 16, kVocabulary);
  const auto loss = [&](const std::vector<DeviceModule*>& modules) {
    LoopbackWorld world(testing::small_gpt2(16), *text, even_runs(4, 2), 0, text.get(), modules);
    world.begin_generation(2);
    world.train_to(1);
    const auto reports = world.evaluate_all();
    EXPECT_TRUE(reports[1].is_ok()) << reports[1].status().message();
    return reports[1]->loss();
  };
  EXPECT_NEAR(loss(Devices(2).modules), loss({}), 1e-5);
}

TEST(Accelerator, TakesTheKernelsForTheTypeOfItsLayers) {
  const auto text = make_text(30, 16, kVocabulary);
  for (const char* precision : {"fp32", "bf16"}) {
    wire::JobSpec job = testing::small_gpt2(16);
    job.mutable_train()->set_precision(precision);
    Devices devices(1);
    LoopbackWorld world(job, *text, even_runs(4, 1), kBucketBytes, nullptr, devices.modules);
    world.begin_generation(2);
    world.train_to(1);
    const PlainModule& module = *devices.own[0];
    const bool is_short = precision == std::string("bf16");
    EXPECT_GT(is_short ? module.of_bf16.calls : module.of_floats.calls, 0u);
    EXPECT_EQ(is_short ? module.of_floats.calls : module.of_bf16.calls, 0u);
  }
}

// Only GPT-2 says that its logits are no longer needed.
TEST(Accelerator, WritesTheGradientOfTheLossIntoLogitsThatAreGivenUp) {
  for (const bool is_text : {true, false}) {
    const auto dataset = is_text ? make_text(30, 16, kVocabulary) : make_patterns(80);
    Devices devices(1);
    LoopbackWorld world(is_text ? testing::small_gpt2(16) : small_job("mlp"), *dataset,
                        even_runs(4, 1), kBucketBytes, nullptr, devices.modules);
    world.begin_generation(2);
    world.train_to(1);
    const auto& floats = devices.own[0]->of_floats;
    EXPECT_EQ(floats.losses, 4u);
    EXPECT_EQ(floats.losses_in_place, is_text ? 4u : 0u);
  }
}

TEST(Accelerator, EvaluatesToTheCpusBits) {
  const auto dataset = make_patterns(60);
  const auto eval = make_patterns(101);
  const auto report = [&](const std::vector<DeviceModule*>& modules) {
    LoopbackWorld world(job_with_everything(), *dataset, even_runs(4, 2), 0, eval.get(), modules);
    world.begin_generation(3);
    world.train_to(3);
    const auto reports = world.evaluate_all();
    EXPECT_TRUE(reports[1].is_ok()) << reports[1].status().message();
    return reports[1]->SerializeAsString();
  };
  const std::string expected = report({});
  EXPECT_EQ(report(Devices(2).modules), expected);
}

// Returns what four ranks report of 8 steps, of which the first and every second are checked.
std::vector<wire::CheckReport> checks_of(const std::vector<DeviceModule*>& modules,
                                         bool connects_devices = false) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = job_with_everything();
  job.mutable_train()->set_check_every(2);
  job.mutable_comm()->set_numerics("exact");
  LoopbackWorld world(job, *dataset, even_runs(4, 4), kBucketBytes, nullptr, modules);
  world.connects_devices = connects_devices;
  world.begin_generation(8);
  std::vector<wire::CheckReport> found;
  for (Step step = 0; step < 8; ++step) {
    for (const auto& outcome : world.step_all()) {
      EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
      if (outcome.is_ok() && outcome->check) found.push_back(*outcome->check);
    }
  }
  EXPECT_EQ(found.size(), 20u);
  return found;
}

std::vector<std::string> texts_of(const std::vector<wire::CheckReport>& reports) {
  std::vector<std::string> texts;
  for (const wire::CheckReport& report : reports) texts.push_back(report.SerializeAsString());
  return texts;
}

TEST(Accelerator, ChecksAStepToTheCpusHashes) {
  EXPECT_EQ(texts_of(checks_of(Devices(4).modules)), texts_of(checks_of({})));
}

TEST(Accelerator, ThatFailsEndsTheStepWithItsWordsAndAppliesNothing) {
  const auto dataset = make_patterns(80);
  Devices devices(1);
  LoopbackWorld world(small_job("mlp"), *dataset, even_runs(4, 1), kBucketBytes, nullptr,
                      devices.modules);
  world.begin_generation(4);
  world.train_to(1);
  devices.own[0]->copies_to_fail = 1000;
  const auto outcome = world.engine(0).step();
  ASSERT_FALSE(outcome.is_ok());
  EXPECT_EQ(outcome.status().code(), Code::kInternal);
  EXPECT_THAT(outcome.status().message(), HasSubstr("the device is gone"));
  EXPECT_EQ(world.engine(0).applied_steps(), 1u);
}

std::vector<std::string> fingerprint_with(const std::string& nccl, const std::string& backend,
                                          const std::string& numerics) {
  wire::JobSpec job = small_job("mlp");
  job.mutable_comm()->set_backend(backend);
  job.mutable_comm()->set_numerics(numerics);
  const auto dataset = make_patterns(20);
  PlainModule module;
  module.nccl_version = nccl;
  return testing::make_engine(job, *dataset, nullptr, &module).value()->fingerprint();
}

// The coordinator lets no two fingerprints into an exact run (decide_register.cc).
TEST(Accelerator, NamesTheVersionOfNcclWhereItIsNamedOrDecidesBits) {
  for (const char* other : {"2.27.3", ""}) {
    EXPECT_EQ(fingerprint_with("2.28.9", "auto", "exact"),
              fingerprint_with(other, "auto", "exact"));
    EXPECT_NE(fingerprint_with("2.28.9", "nccl", "exact"),
              fingerprint_with(other, "nccl", "exact"));
    EXPECT_NE(fingerprint_with("2.28.9", "auto", "fast"), fingerprint_with(other, "auto", "fast"));
  }
  EXPECT_THAT(fingerprint_with("2.28.9", "nccl", "exact"), ::testing::Contains("nccl=2.28.9"));
  EXPECT_THAT(fingerprint_with("2.28.9", "auto", "exact"), ::testing::Contains("device=plain"));
}

TEST(Accelerator, ThatIsConnectedTrainsToTheCpusBitsWithAnyNumberOfRanks) {
  const auto dataset = make_patterns(83);
  const TrainResult expected = on_the_cpu(job_with_everything(), *dataset, kSteps);
  const TrainResult early = on_the_cpu(job_with_everything(), *dataset, 3);
  for (const uint32_t ranks : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(ranks);
    Devices devices(ranks);
    LoopbackWorld world(job_with_everything(), *dataset, even_runs(4, ranks), kBucketBytes, nullptr,
                        devices.modules);
    world.connects_devices = true;
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(3).state == early.state);
    world.connects_devices = ranks == 2;  // and over the host, in a generation after
    world.begin_generation(kSteps);
    EXPECT_TRUE(world.train_to(kSteps).state == expected.state);
  }
}

TEST(Accelerator, ThatIsConnectedSkipsStepsThatOverflowOnAllRanks) {
  const auto dataset = make_patterns(80);
  wire::JobSpec job = small_job("mlp");
  job.mutable_train()->set_precision("fp16");
  job.mutable_train()->set_loss_scale(0x1p40);
  job.mutable_train()->set_loss_scale_growth(2);
  job.mutable_train()->set_loss_scale_backoff(0x1p-12);
  job.mutable_train()->set_loss_scale_growth_every(2);
  Devices devices(2);
  LoopbackWorld world(job, *dataset, even_runs(4, 2), kBucketBytes, nullptr, devices.modules);
  world.connects_devices = true;
  world.begin_generation(8);
  expect_same(world.train_to(8), on_the_cpu(job, *dataset, 8));
}

// Weights and gradients are compared as anywhere; sums are not: no rank has the partials.
TEST(Accelerator, ThatIsConnectedChecksWeightsAndGradients) {
  const auto connected = checks_of(Devices(4).modules, /*connects_devices=*/true);
  for (const wire::CheckReport& report : connected) EXPECT_FALSE(report.has_sum());
  auto expected = checks_of({});
  for (wire::CheckReport& report : expected) {
    report.clear_has_sum();
    report.clear_sum_rank();
    report.clear_sum_hash();
  }
  EXPECT_EQ(texts_of(connected), texts_of(expected));
}

}  // namespace
}  // namespace lockstep
