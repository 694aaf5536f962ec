// A TorchScript file as a model: the promises of the built-in ones, and what is refused.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "comm/base/prng.h"
#include "tests/support/fails_with.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"
#include "worker/model/model_file.h"
#include "worker/torch/model/model.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::even_runs;
using testing::expect_same_bits;
using ::testing::HasSubstr;
using testing::LoopbackWorld;
using testing::train;
using testing::TrainResult;

const data::SampleShape kImages{1, 4, 4};
constexpr int kBroken = 300;

std::string golden(const std::string& name) {
  return std::string(LOCKSTEP_GOLDEN_DIR) + "/" + name;
}

wire::JobSpec job_of(const std::string& path) {
  wire::JobSpec job = testing::small_job("torchscript");
  job.mutable_model()->set_path(path);
  job.mutable_model()->set_sha256(read_model_file(path)->sha256);
  return job;
}

template <typename T>
T read(Engine& engine, const std::string& name, size_t index = 0) {
  T value{};
  for (const StateTensor& t : testing::state_of(engine)) {
    if (t.name != name || t.section == StateSection::kOptimizer) continue;
    EXPECT_LT(index * sizeof value, t.bytes);
    std::memcpy(&value, t.data + index * sizeof value, sizeof value);
    return value;
  }
  ADD_FAILURE() << "there is no " << name;
  return value;
}

std::vector<std::string> parameter_names(Engine& engine) {
  std::vector<std::string> names;
  for (const StateTensor& t : testing::state_of(engine))
    if (t.section == StateSection::kParameter) names.push_back(t.name);
  return names;
}

TEST(TorchScript, SameBitsForAnyNumberOfRanksWithDropoutAndBatchNorm) {
  const auto dataset = testing::make_patterns(83, 12, 10);  // the last step is short
  wire::JobSpec job = job_of(golden("torchscript_images.pt"));
  job.mutable_train()->set_global_batch(24);
  job.mutable_optimizer()->set_lr(1e-2);
  expect_same_bits(job, *dataset, 8);
}

TEST(TorchScript, SameBitsInBf16) {
  const auto dataset = testing::make_patterns(80, 12, 10);
  wire::JobSpec job = job_of(golden("torchscript_images.pt"));
  job.mutable_train()->set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-2);
  expect_same_bits(job, *dataset, 8);
}

TEST(TorchScript, SameBitsForTokensWithATiedWeight) {
  const auto dataset = testing::make_text(60, 16);
  wire::JobSpec job = job_of(golden("torchscript_tokens.pt"));
  job.mutable_data()->clear_transforms();
  job.mutable_optimizer()->set_lr(1e-2);
  expect_same_bits(job, *dataset, 6);
  auto engine = testing::make_engine(job, *dataset);
  ASSERT_TRUE(engine.is_ok()) << engine.status().message();
  EXPECT_THAT(parameter_names(**engine), ::testing::ElementsAre("tokens.weight", "places.weight",
                                                                "hidden.weight", "hidden.bias"));
}

TEST(TorchScript, BeginsAsTheFileSaysAndCountsStepsOnce) {
  const auto dataset = testing::make_patterns(80, 12, 10);
  LoopbackWorld world(job_of(golden("torchscript_images.pt")), *dataset, even_runs(4, 2));
  Engine& engine = world.engine(0);
  const float first = read<float>(engine, "conv.weight");
  EXPECT_EQ(read<float>(engine, "norm.running_var"), 1.0f);
  world.begin_generation(6);
  world.train_to(6);
  EXPECT_EQ(read<int64_t>(engine, "norm.num_batches_tracked"), 6);
  EXPECT_NE(read<float>(engine, "norm.running_var"), 1.0f);
  EXPECT_NE(read<float>(engine, "level", 7), 0.0f);  // replaced in forward, not changed in place
  EXPECT_NE(read<float>(engine, "conv.weight"), first);
  ASSERT_TRUE(engine.start_afresh().is_ok());
  EXPECT_EQ(read<float>(engine, "conv.weight"), first);
  EXPECT_EQ(read<int64_t>(engine, "norm.num_batches_tracked"), 0);
  for (const std::string& name : parameter_names(engine)) EXPECT_NE(name, "gain");  // frozen
}

TEST(TorchScript, WhatRanBeforeInTheProcessChangesNothing) {
  const auto dataset = testing::make_patterns(80, 12, 10);
  const wire::JobSpec job = job_of(golden("torchscript_images.pt"));
  const TrainResult before = train(job, *dataset, even_runs(4, 1), 4);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(train(job, *dataset, even_runs(4, 1), 4).state == before.state);
}

// The device `meta` has shapes and no values, and refuses tensors of the CPU as a GPU does.
at::Tensor logits_on_meta(Model& model, const at::Tensor& x) {
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  for (const ParameterSpec& p : model.layout().parameters)
    parameters.push_back(at::empty(p.shape, options).set_requires_grad(true));
  for (const BufferSpec& b : model.layout().buffers)
    buffers.push_back(at::empty({b.size}, options));
  EXPECT_TRUE(model.move_to(at::kMeta).is_ok());
  return model.forward({.x = x}, parameters, buffers, {.training = true}).logits;
}

// Modules made here, each with one thing that is wrong.
class Refused : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  using Build = std::function<void(torch::jit::Module&)>;

  Status status_of(const Build& build, const data::SampleShape& shape = kImages) {
    torch::jit::Module module("Net");
    module.register_attribute("training", c10::BoolType::get(), true);
    build(module);
    module.save(path_);
    return status(shape);
  }
  Status status(const data::SampleShape& shape = kImages) {
    wire::ModelSpec spec;
    spec.set_name("torchscript");
    spec.set_path(path_);
    return make_model(spec, shape, shape.is_sequence() ? 256 : 3).status();
  }
  void expect(const Build& build, const std::string& words) {
    expect_refused(status_of(build), words);
  }
  void expect_refused(const Status& refused, const std::string& words) {
    EXPECT_THAT(refused, FailsWith(Code::kConfig, HasSubstr(path_), HasSubstr(words)));
    EXPECT_THAT(refused.message(), ::testing::Not(HasSubstr("\n")));
  }
  void write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  static void linear(torch::jit::Module& m) {
    m.register_parameter("w", at::ones({16, 3}).set_requires_grad(true), false);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("lockstep-" + std::to_string(::getpid()) + ".pt"))
          .string();
};

TEST_F(Refused, NothingIsWrongWithThePlainOne) {
  const Status status = status_of([](auto& m) {
    linear(m);
    m.define("def forward(self, x):\n  return x.flatten(1).matmul(self.w)\n");
  });
  EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST_F(Refused, NotForTensorsInListsOnAnotherDevice) {
  const Status status = status_of([](auto& m) {
    linear(m);
    m.register_attribute("tables", c10::ListType::ofTensors(),
                         c10::List<at::Tensor>({at::ones({3})}));
    m.define("def forward(self, x):\n  return x.flatten(1).matmul(self.w) + self.tables[0]\n");
  });
  ASSERT_TRUE(status.is_ok()) << status.message();
  auto model = make_model(job_of(path_).model(), kImages, 3);
  EXPECT_TRUE(logits_on_meta(**model, at::empty({6, 1, 4, 4}, at::kMeta)).is_meta());
}

// A tensor that the script itself makes stays on the CPU.
TEST_F(Refused, LogitsOnAnotherDeviceThanTheInput) {
  const Status status = status_of([](auto& m) {
    linear(m);
    m.define(
        "def forward(self, x):\n  y = x.flatten(1).matmul(self.w)\n"
        "  if x.is_meta:\n    y = torch.zeros(6, 3)\n  return y\n");
  });
  ASSERT_TRUE(status.is_ok()) << status.message();
  auto model = make_model(job_of(path_).model(), kImages, 3);
  try {
    logits_on_meta(**model, at::empty({6, 1, 4, 4}, at::kMeta));
    FAIL() << "logits on the CPU are no logits of that device";
  } catch (const std::exception& e) {
    EXPECT_THAT(std::string(e.what()), AllOf(Names(path_), HasSubstr("meta")));
  }
}

TEST_F(Refused, WhatItGivesOrTakes) {
  const auto forward = [](const std::string& body) {
    return [body](torch::jit::Module& m) {
      linear(m);
      m.define("def forward(self, x):\n  h = x.flatten(1).matmul(self.w)\n" + body);
    };
  };
  expect(forward("  return h[:, :2]\n"), "gives (2, 2); images need logits (2, 3)");
  expect(forward("  return h.unsqueeze(1)\n"), "gives (2, 1, 3)");
  expect(forward("  return (h, h)\n"), "a Tuple and not one tensor");
  expect(forward("  return h.argmax(1, keepdim=True).expand(2, 3)\n"), "values of type Long");
  expect(forward("  return h.detach()\n"), "does not depend on its parameters");
  expect(forward("  return h / 0.0\n"), "NaN");
  expect(forward("  return h.matmul(h)\n"), "fails on samples in the shape of the training data");
  expect(forward("  assert x.size(2) == 28, 'give me 28'\n  return h\n"), "give me 28");
}

// A batch of padded documents is as wide as its longest.
TEST_F(Refused, OneWidthOnlyWhereDocumentsArePadded) {
  const auto table = [](const std::string& use) {
    return [use](torch::jit::Module& m) {
      m.register_parameter("w", at::ones({256, 256}).set_requires_grad(true), false);
      m.register_parameter("places", at::ones({100, 256}).set_requires_grad(true), false);
      m.define("def forward(self, x):\n  return torch.embedding(self.w, x)" + use + "\n");
    };
  };
  const Build fixed = table(" + self.places");
  const Build any = table(" + self.places[:x.size(1)]");
  data::SampleShape documents{.tokens = 100, .token_bytes = 1};
  EXPECT_TRUE(status_of(fixed, documents).is_ok());
  documents.is_padded = true;
  expect_refused(status_of(fixed, documents), "data.documents: pad");
  EXPECT_TRUE(status_of(any, documents).is_ok()) << status_of(any, documents).message();
  const auto dataset = testing::padded(testing::make_documents(60, 50), 100);
  wire::JobSpec job = job_of(path_);
  job.mutable_data()->clear_transforms();
  LoopbackWorld world(job, *dataset, even_runs(4, 2));
  world.begin_generation(3);
  EXPECT_EQ(world.train_to(3).losses.size(), 3u);
}

TEST_F(Refused, ItsParameters) {
  expect([](auto& m) { m.define("def forward(self, x):\n  return x.flatten(1)[:, :3]\n"); },
         "has no parameters to train");
  expect(
      [](auto& m) {
        m.register_parameter("w", at::ones({16, 3}, at::kDouble).set_requires_grad(true), false);
        m.define("def forward(self, x):\n  return x.double().flatten(1).matmul(self.w)\n");
      },
      "has a parameter w of type Double");
  expect(
      [](auto& m) {
        const at::Tensor all = at::ones({17, 3});
        m.register_parameter("w", all.narrow(0, 0, 16).set_requires_grad(true), false);
        m.register_parameter("v", all.narrow(0, 1, 16).set_requires_grad(true), false);
        m.define("def forward(self, x):\n  return x.flatten(1).matmul(self.w + self.v)\n");
      },
      "share a part of their memory");
}

TEST_F(Refused, StateThatRanksCouldNotAgreeOn) {
  const auto with = [](const at::Tensor& buffer, const std::string& body) {
    return [buffer, body](torch::jit::Module& m) {
      linear(m);
      m.register_buffer("b", buffer);
      m.register_attribute("calls", c10::IntType::get(), 0);
      m.define("def forward(self, x):\n" + body + "  return x.flatten(1).matmul(self.w)\n");
    };
  };
  expect(with(at::zeros({1}), "  self.calls = self.calls + 1\n"), "changes its attribute calls");
  expect(with(at::zeros({2}, at::kDouble), "  self.b.add_(1)\n"),
         "changes its buffer b of type Double");
  expect(with(at::zeros({1}, at::kLong), "  self.b.add_(2)\n"),
         "changes its buffer b of type Long");
  expect(with(at::zeros({2}), "  self.b.add_(1)\n"), "changes its buffer b in evaluation");
  expect(with(at::zeros({1}, at::kLong),
              "  if self.training:\n    self.b.add_(1)\n    x = x + self.b\n"),
         "gives other values when its counter b changes");
  // A few samples of the first steps show nothing of what comes with a period.
  for (const std::string period : {"2", "10", "125", "1000"})
    for (const std::string order :
         {"    self.b.add_(1)\n    if bool(self.b % P == 0):\n      x = -x\n",
          "    if bool((self.b + 1) % P == 0):\n      x = -x\n"
          "    self.b.add_(1)\n"}) {
      std::string body = order;
      body.replace(body.find(" P "), 3, " " + period + " ");
      expect(with(at::zeros({1}, at::kLong), "  if self.training:\n" + body),
             "gives other values when its counter b changes");
    }
}

// In evaluation a counter has the run's value, whatever forwards this process has made.
TEST_F(Refused, NotForAnEvaluationThatReadsACounter) {
  const Status made = status_of([](auto& m) {
    linear(m);
    m.register_buffer("b", at::zeros({}, at::kLong));
    m.define(
        "def forward(self, x):\n"
        "  y = x.flatten(1).matmul(self.w)\n"
        "  if self.training:\n    self.b.add_(1)\n  else:\n    y = y * (1 + self.b)\n"
        "  return y\n");
  });
  ASSERT_TRUE(made.is_ok()) << made.message();
  const auto dataset = testing::make_patterns(40, 4, 3);
  std::vector<std::string> reports;
  for (const uint32_t ranks : {1u, 2u, 4u}) {
    LoopbackWorld world(job_of(path_), *dataset, even_runs(4, ranks), 0, dataset.get());
    world.begin_generation(3);
    world.train_to(3);
    EXPECT_EQ(read<int64_t>(world.engine(0), "b"), 3);
    for (const auto& report : world.evaluate_all()) {
      ASSERT_TRUE(report.is_ok()) << report.status().message();
      reports.push_back(report->SerializeAsString());
    }
  }
  EXPECT_EQ(std::set<std::string>(reports.begin(), reports.end()).size(), 1U);
}

TEST_F(Refused, AConstantThatChangesLaterEndsTheStep) {
  const Status made = status_of([](auto& m) {
    linear(m);
    m.register_buffer("b", at::zeros({1}));
    m.define(
        "def forward(self, x):\n"
        "  if x.size(0) > 2:\n    self.b.add_(1)\n"
        "  return x.flatten(1).matmul(self.w)\n");
  });
  ASSERT_TRUE(made.is_ok()) << made.message();
  const auto dataset = testing::make_patterns(40, 4, 3);
  LoopbackWorld world(job_of(path_), *dataset, even_runs(4, 1));
  world.begin_generation(1);
  const auto outcome = std::move(world.step_all()[0]);
  EXPECT_THAT(outcome.status().message(), AllOf(Names(path_), Says("tensor b")));
}

TEST_F(Refused, ABatchNormOverOneValueBeforeTheFirstStep) {
  const Status made = status_of([](auto& m) {
    linear(m);
    m.define(
        "def forward(self, x):\n"
        "  assert x.size(0) > 1, 'Expected more than 1 value per channel when training'\n"
        "  return x.flatten(1).matmul(self.w)\n");
  });
  ASSERT_TRUE(made.is_ok()) << made.message();
  const auto dataset = testing::make_patterns(40, 4, 3);
  wire::JobSpec job = job_of(path_);
  job.mutable_train()->set_global_batch(4);
  const Status status = testing::make_engine(job, *dataset).status();
  EXPECT_THAT(status, FailsWith(Code::kConfig, Says("per channel")));
}

TEST_F(Refused, AFileThatIsNotThereIsNoInputAndOneThatChangedIsAnotherRun) {
  EXPECT_EQ(status().code(), Code::kNoInput);
  EXPECT_THAT(status().message(), HasSubstr(path_));
  std::filesystem::copy_file(golden("torchscript_images.pt"), path_);
  wire::ModelSpec spec = job_of(path_).model();
  write("something else");
  const Status changed = make_model(spec, {1, 12, 12}, 10).status();
  EXPECT_THAT(changed, FailsWith(Code::kUsage, HasSubstr(path_), Advises("back")));
}

// Cut anywhere, and with bytes changed anywhere: refused in one line, or as good as before.
TEST_F(Refused, ABrokenFileNeverCrashes) {
  const std::string whole = read_model_file(golden("torchscript_tokens.pt"))->content;
  const data::SampleShape tokens{.tokens = 8, .token_bytes = 1};
  write("");
  EXPECT_FALSE(status(tokens).is_ok());
  Prng chance(3);
  for (int i = 0; i < kBroken; ++i) {
    std::string broken = whole;
    if (i % 4 == 0) broken.resize(chance.below(whole.size()));
    for (int flips = 0; i % 4 != 0 && flips <= i % 3; ++flips)
      broken[chance.below(broken.size())] = static_cast<char>(chance.next());
    write(broken);
    const Status found = status(tokens);
    EXPECT_THAT(found.message(), ::testing::Not(HasSubstr("\n")));
    EXPECT_FALSE(i % 4 == 0 && found.is_ok());
  }
}

}  // namespace
}  // namespace lockstep
