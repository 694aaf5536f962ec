// An exported program in the engine: the same bits for any number of ranks, what replay sees, and
// which jobs and programs are refused before the first step.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/model_file.h"
#include "worker/torch/model/foreign.h"
#include "worker/torch/model/model.h"
#include "worker/torch/plan/program_parts.h"

namespace lockstep {
namespace {

using exported::testing::golden_path;
using testing::even_runs;
using testing::expect_same_bits;
using testing::LoopbackWorld;

const data::SampleShape kImage{1, 8, 8};
constexpr uint32_t kClasses = 10;

wire::JobSpec job_of(const std::string& program) {
  wire::JobSpec job = testing::small_job("exported");
  job.mutable_model()->set_path(golden_path(program));
  job.mutable_model()->set_sha256(read_model_file(golden_path(program))->sha256);
  job.mutable_optimizer()->set_lr(1e-2);
  return job;
}

// Sequences of 8 tokens below 20.
std::unique_ptr<data::Dataset> make_tokens(uint32_t samples) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("lockstep-tokens-" + std::to_string(::getpid())))
          .string();
  std::ofstream out(path, std::ios::binary);
  for (uint32_t i = 0; i < samples * 8 + 1; ++i) out.put(static_cast<char>((i * 7 + i / 5) % 20));
  out.close();
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format("text");
  auto dataset = data::open_dataset(spec, data::Split::kTrain, "", {}, {8, 20});
  std::filesystem::remove(path);  // it stays mapped
  EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
  return std::move(dataset).value();
}

TEST(Exported, SameBitsForAnyNumberOfRanksWithDropoutAndBatchNorm) {
  const auto dataset = testing::make_patterns(83, 8, kClasses);  // the last step is short
  wire::JobSpec job = job_of("convnet");
  job.mutable_train()->set_global_batch(24);
  expect_same_bits(job, *dataset, 6);
}

TEST(Exported, SameBitsOfATiedWeightWithDropoutInAttention) {
  const auto dataset = make_tokens(60);
  wire::JobSpec job = job_of("tied_lm");
  job.mutable_data()->clear_transforms();
  expect_same_bits(job, *dataset, 5);
  auto engine = testing::make_engine(job, *dataset);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  std::set<std::string> names;
  for (const StateTensor& t : testing::state_of(**engine))
    if (t.section == StateSection::kParameter) names.insert(t.name);
  EXPECT_EQ(names.count("embed.weight") + names.count("head.weight"), 1U);
}

// `regions` has assertions about types, which hold in the precision of the export only.
TEST(Exported, SameBitsInBf16WithAnAssertion) {
  const auto dataset = testing::make_patterns(80, 8, kClasses);
  for (const char* const program : {"regions", "vit"}) {
    wire::JobSpec job = job_of(program);
    job.mutable_train()->set_precision("bf16");
    expect_same_bits(job, *dataset, 4);
  }
}

TEST(Exported, CountsStepsOnceAndMovesStatistics) {
  const auto dataset = testing::make_patterns(80, 8, kClasses);
  LoopbackWorld world(job_of("convnet"), *dataset, even_runs(4, 2));
  const auto read = [&](const std::string& name) -> std::string {
    for (const StateTensor& t : testing::state_of(world.engine(0))) {
      if (t.name == name && t.section != StateSection::kOptimizer)
        return {reinterpret_cast<const char*>(t.data), t.bytes};
    }
    ADD_FAILURE() << "there is no " << name;
    return "";
  };
  const std::string mean = read("bn.running_mean");
  const int64_t six = 6;
  world.begin_generation(6);
  world.train_to(6);
  EXPECT_EQ(read("bn.num_batches_tracked"),
            std::string(reinterpret_cast<const char*>(&six), sizeof six));
  EXPECT_NE(read("bn.running_mean"), mean);
  ASSERT_TRUE(world.engine(0).start_afresh().is_ok());
  EXPECT_EQ(read("bn.running_mean"), mean);
}

TEST(Exported, ABatchIsNeverEmptyWhateverTheProgramTakes) {
  exported::Program program;
  program.samples = {0, 64};
  EXPECT_EQ(exported::batches_of(program).min, 1U);
  EXPECT_EQ(exported::batches_of(program).max, 64U);
}

// `in_place_input` changes the batch, which an evaluation reads twice.
TEST(Exported, ABatchStaysAsItIs) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("in_place_input"));
  const auto model = make_model(spec, kImage, kClasses);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const InitialTensors tensors = initial_tensors((*model)->layout());
  const at::Tensor x = sample_input(kImage, 3, kClasses);
  const at::Tensor before = x.clone();
  for (const bool training : {false, true}) {
    (*model)->forward({.x = x}, tensors.parameters, tensors.buffers, {.training = training});
    EXPECT_TRUE(same_bits(x, before)) << training;
  }
}

// make_model() of a program, and what it says.
Status made(const std::string& program, const data::SampleShape& shape = kImage,
            uint32_t classes = kClasses, const std::string& eval = "") {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path(program));
  if (!eval.empty()) spec.set_eval_path(golden_path(eval));
  const Status status = make_model(spec, shape, classes).status();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status;
}

TEST(RefusedProgram, ForDataOfAnotherShape) {
  EXPECT_TRUE(made("mlp").is_ok()) << made("mlp").message();
  EXPECT_THAT(made("mlp", {3, 8, 8}),
              FailsWith(Code::kConfig, Names("mlp.pt2", "(batch, 3, 8, 8)"), Advises("export it")));
  EXPECT_THAT(made("mlp", {.tokens = 8, .token_bytes = 1}, 20),
              FailsWith(Code::kConfig, Names("mlp.pt2", "int64")));
  EXPECT_THAT(made("mlp", kImage, 7), FailsWith(Code::kConfig, Names("mlp.pt2", "(2, 7)")));
  data::SampleShape padded{.tokens = 32, .token_bytes = 1};
  padded.is_padded = true;
  EXPECT_THAT(made("tied_lm", padded, 20), FailsWith(Code::kConfig, Names("tied_lm.pt2")));
  EXPECT_THAT(made("named"), FailsWith(Code::kConfig, Names("named.pt2"), Advises("logits")));
}

TEST(RefusedProgram, ThatIsNotTheFileOfTheRun) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("stochastic_depth"));
  spec.set_sha256("aa");
  EXPECT_THAT(make_model(spec, kImage, kClasses).status(),
              FailsWith(Code::kUsage, Names("model.path", "model.sha256", "aa")));
  spec.clear_sha256();
  spec.set_eval_path(golden_path("stochastic_depth.eval"));
  spec.set_eval_sha256("bb");
  EXPECT_THAT(make_model(spec, kImage, kClasses).status(),
              FailsWith(Code::kUsage, Names("model.eval_path", "model.eval_sha256", "bb")));
}

TEST(RefusedProgram, ThatComputesWithACounter) {
  EXPECT_THAT(made("refused_periodic"),
              FailsWith(Code::kConfig, Names("refused_periodic.pt2", "steps", "refused.py"),
                        Says("aten.remainder"), Advises("out of training")));
}

TEST(Exported, EvaluationReadsTheCountersOfTheRun) {
  wire::JobSpec job = job_of("counter_in_eval");
  job.mutable_model()->set_eval_path(golden_path("counter_in_eval.eval"));
  const auto dataset = testing::make_patterns(80, 8, kClasses);
  std::set<std::string> reports;
  for (const uint32_t ranks : {1u, 2u}) {
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), 0, dataset.get());
    world.begin_generation(3);
    world.train_to(3);
    for (const auto& report : world.evaluate_all()) {
      ASSERT_TRUE(report.is_ok()) << report.status().message();
      reports.insert(report->SerializeAsString());
    }
  }
  EXPECT_EQ(reports.size(), 1U);

  const auto model = make_model(job.model(), kImage, kClasses);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const at::NoGradGuard no_grad;
  const InitialTensors initial = initial_tensors((*model)->layout());
  const ModelInputs x = sample_inputs(kImage, 3, kClasses);
  const auto logits_at = [&](std::vector<int64_t> counters) {
    return (*model)->forward(x, initial.parameters, initial.buffers, {.counters = counters}).logits;
  };
  EXPECT_TRUE(same_bits(logits_at({0}), logits_at({})));
  EXPECT_TRUE(same_bits(logits_at({3}), logits_at({0}).mul(4)));
}

TEST(Exported, AnEvaluationProgramWithOtherConstantsIsTold) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("unused"));
  const auto names_gain = [&] {
    const auto model = make_model(spec, kImage, kClasses);
    EXPECT_TRUE(model.is_ok()) << model.status().message();
    const std::vector<std::string> notes = (*model)->notes();
    return std::ranges::any_of(notes, [](const std::string& note) {
      return note.find("unused.eval.pt2") != std::string::npos &&
             note.find("another gain ") != std::string::npos;
    });
  };
  EXPECT_FALSE(names_gain());
  spec.set_eval_path(golden_path("unused.eval"));
  EXPECT_TRUE(names_gain());
}

// As in PyTorch, where an optimizer passes over what has no .grad.
TEST(Exported, AWeightWithoutAGradientIsNotDecayedAndTold) {
  constexpr char kDecay[] = "decay=with-gradient";
  wire::JobSpec job = job_of("unused");
  const auto dataset = testing::make_patterns(80, 8, kClasses);
  const auto floats_of = [](Engine& engine, const std::string& name) {
    for (const StateTensor& t : testing::state_of(engine))
      if (t.name == name && t.section == StateSection::kParameter)
        return std::string(reinterpret_cast<const char*>(t.data), t.bytes);
    ADD_FAILURE() << "there is no " << name;
    return std::string();
  };
  for (const char* const optimizer : {"sgd", "adamw", "muon"}) {
    job.mutable_optimizer()->set_name(optimizer);
    job.mutable_optimizer()->set_momentum(0.9);
    job.mutable_optimizer()->set_weight_decay(0.1);
    LoopbackWorld world(job, *dataset, even_runs(4, 1));
    Engine& engine = world.engine(0);
    const std::string spare = floats_of(engine, "spare.weight");
    const std::string used = floats_of(engine, "fc.weight");
    world.begin_generation(4);
    world.train_to(4);
    EXPECT_EQ(floats_of(engine, "spare.weight"), spare) << optimizer;
    EXPECT_NE(floats_of(engine, "fc.weight"), used) << optimizer;
    EXPECT_THAT(engine.fingerprint(), ::testing::Contains(kDecay));
    ASSERT_EQ(engine.notes().size(), 1U);
    EXPECT_THAT(engine.notes()[0], Names("unused.pt2", "spare.weight", "spare.bias", "detach()"));
  }
  job.mutable_optimizer()->set_weight_decay(0);
  EXPECT_THAT((*testing::make_engine(job, *dataset))->fingerprint(),
              ::testing::Not(::testing::Contains(kDecay)));
}

TEST(RefusedProgram, WhoseEvaluationCannotBeSwitched) {
  EXPECT_THAT(made("stochastic_depth"),
              FailsWith(Code::kConfig, Names("stochastic_depth.pt2", "bernoulli_", "models.py"),
                        Advises("model.eval_path")));
  const Status with_eval = made("stochastic_depth", kImage, kClasses, "stochastic_depth.eval");
  EXPECT_TRUE(with_eval.is_ok()) << with_eval.message();
}

TEST(Exported, CountersInARegionAreLeftOutOfEvaluation) {
  const Status status = made("in_autocast");
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(RefusedProgram, ForEvaluationOfAnotherModule) {
  EXPECT_THAT(made("stochastic_depth", kImage, kClasses, "mlp"),
              FailsWith(Code::kConfig, Names("mlp.pt2", "fc1.weight"), Advises("one module")));
  EXPECT_THAT(made("mlp", kImage, kClasses, "vit"),
              FailsWith(Code::kConfig, Names("vit.pt2"), Advises("one module")));
}

TEST(RefusedProgram, ForEvaluationThatIsStillInTraining) {
  EXPECT_THAT(made("convnet", kImage, kClasses, "convnet"),
              FailsWith(Code::kConfig, Names("convnet.pt2", "models.py"), Advises("model.eval()")));
}

TEST(RefusedProgram, ThatChangesAParameter) {
  EXPECT_THAT(
      made("refused_writes_weight"),
      FailsWith(Code::kConfig, Names("refused_writes_weight.pt2", "embed.weight", "refused.py"),
                Says("aten.embedding_renorm_")));
}

TEST(RefusedProgram, ThatChangesABufferOfAnotherType) {
  EXPECT_THAT(made("refused_double_statistics"),
              FailsWith(Code::kConfig, Names("refused_double_statistics.pt2", "peak", "refused.py"),
                        Says("aten.copy_"), Advises("float32 statistics")));
}

// Every slot and every evaluation batch, the last ones too.
TEST(RefusedJob, ForBatchesThatTheProgramDoesNotTake) {
  wire::JobSpec job = job_of("from_two");
  job.mutable_train()->set_global_batch(20);
  const auto engine = [&](uint32_t samples, uint32_t eval_samples) {
    const auto dataset = testing::make_patterns(samples, 8, kClasses);
    const auto eval = testing::make_patterns(eval_samples, 8, kClasses);
    return testing::make_engine(job, *dataset, eval_samples == 0 ? nullptr : eval.get()).status();
  };
  EXPECT_TRUE(engine(40, 18).is_ok()) << engine(40, 18).message();
  EXPECT_THAT(engine(46, 18), FailsWith(Code::kConfig, Names("from_two.pt2", "slot", "6 samples")));
  EXPECT_THAT(engine(40, 17),
              FailsWith(Code::kConfig, Names("from_two.pt2", "train.eval_batch 16", "17 samples")));
  job.mutable_train()->set_global_batch(4);
  EXPECT_THAT(engine(40, 18),
              FailsWith(Code::kConfig, Names("from_two.pt2", "train.global_batch 4")));
}

// Replay asks for the output of every module that has parameters.
TEST(Exported, ShowsReplayTheOutputOfEachModule) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("convnet"));
  const auto model = make_model(spec, kImage, kClasses);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const ModelLayout& layout = (*model)->layout();
  const InitialTensors initial = initial_tensors(layout);
  std::map<std::string, std::vector<int64_t>> seen;
  const ForwardMode::Observer observer = [&](uint32_t parameter, const at::Tensor& output) {
    seen[layout.parameters[parameter].name] = output.sizes().vec();
  };
  const at::Tensor x = at::empty({3, 1, 8, 8}).fill_(0.5);
  (*model)->forward({.x = x}, initial.parameters, initial.buffers,
                    {.training = true, .observer = &observer});
  const std::vector<int64_t> wide = {3, 8, 8, 8};
  const std::vector<int64_t> narrow = {3, 8, 4, 4};
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"stem.weight", wide},          {"bn.weight", wide},
      {"block.conv1.weight", narrow}, {"block.bn1.weight", narrow},
      {"block.conv2.weight", narrow}, {"block.bn2.weight", narrow},
      {"fc.weight", {3, 10}}};
  EXPECT_EQ(seen, expected);
}

// The device `meta` has shapes and no values, and refuses tensors of the CPU as a GPU does.
TEST(Exported, ComputesOnTheDeviceOfItsInput) {
  wire::ModelSpec spec;
  spec.set_name("exported");
  spec.set_path(golden_path("counted"));  // with a buffer that is no parameter
  const auto model = make_model(spec, kImage, kClasses);
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& p : (*model)->layout().parameters)
    parameters.push_back(at::empty(p.shape, options).set_requires_grad(true));
  ASSERT_TRUE((*model)->move_to(at::kMeta).is_ok());
  const at::Tensor x = at::empty({6, 1, 8, 8}, options);
  for (const bool training : {true, false})
    EXPECT_TRUE(
        (*model)->forward({.x = x}, parameters, {}, {.training = training}).logits.is_meta());
}

}  // namespace
}  // namespace lockstep
