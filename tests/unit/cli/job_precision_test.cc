// train.precision, and what fp8 does not go with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"
#include "tests/unit/cli/job_fixture.h"

namespace lockstep {
namespace {

using testing::context;
using testing::values_of;

constexpr char kFp8Job[] =
    "job: text\nmodel: {name: gpt2, n_layer: 2, n_head: 2, n_embd: 32, block: 24}\n"
    "data: {train: {path: d, format: text}, eval: {path: e, format: text}}\n"
    "train: {global_batch: 128, epochs: 2, precision: fp8}\n";

Result<wire::JobSpec> fp8_job(const std::vector<std::string>& overrides,
                              const char* yaml = kFp8Job) {
  return resolve_job(values_of(yaml, overrides), context());
}

TEST(JobPrecision, OtherProgramsWordsForFp8AreAnswered) {
  EXPECT_EQ(fp8_job({})->train().precision(), "fp8");
  for (const char* word : {"fp8-mixed", "float8", "e4m3", "hybrid"})
    EXPECT_THAT(fp8_job({std::string("train.precision=") + word}),
                FailsWith(Code::kUsage, Names("train.precision", word), Advises("fp8")));
}

TEST(JobPrecision, Fp8IsForGpt2Alone) {
  for (const char* model : {"cnn", "mlp", "resnet18"})
    EXPECT_THAT(
        fp8_job({std::string("model.name=") + model, "train.precision=fp8"}, testing::kMinimal),
        FailsWith(Code::kUsage, Names("train.precision", "model.name", model, "gpt2"),
                  Advises("train.precision=bf16")));
  JobContext with_files = context();
  with_files.hash_model_file = [](const std::string&, const auto&) { return std::string("abc"); };
  for (const char* model : {"exported", "torchscript", "plugin"})
    EXPECT_THAT(resolve_job(values_of(testing::kMinimal, {std::string("model.name=") + model,
                                                          "model.path=m", "train.precision=fp8"}),
                            with_files),
                FailsWith(Code::kUsage, Names("train.precision", "model.name", model),
                          Advises("train.precision=bf16")));
}

TEST(JobPrecision, AWidthThatFp8CannotTakeIsRefusedWithTheNextOne) {
  EXPECT_THAT(fp8_job({"model.n_embd=40"}),
              FailsWith(Code::kUsage, Names("train.precision", "model.n_embd", "40"),
                        Advises("model.n_embd=48")));
  EXPECT_THAT(fp8_job({"model.n_embd=36", "model.n_head=3"}),
              FailsWith(Code::kUsage, Advises("model.n_embd=48")));
  EXPECT_TRUE(fp8_job({"model.n_embd=48", "model.n_head=3", "model.block=7"}).is_ok());
  EXPECT_TRUE(fp8_job({"model.n_embd=40", "train.precision=bf16"}).is_ok());
}

}  // namespace
}  // namespace lockstep
