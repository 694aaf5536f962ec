#include "data/doctor/model_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace lockstep::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

data::SampleShape images(uint32_t side) {
  data::SampleShape shape;
  shape.channels = 3;
  shape.height = shape.width = side;
  return shape;
}

wire::JobSpec resnet(const char* stem) {
  wire::JobSpec job;
  job.mutable_model()->set_name("resnet18");
  job.mutable_model()->set_stem(stem);
  return job;
}

TEST(ModelAdvice, AStemThatKeepsLargeImagesIsNamed) {
  const Setting setting;
  EXPECT_THAT(model_advice(resnet("auto"), images(64), 10, setting),
              Contains(AllOf(Names("64x64"), Advises("model.stem=imagenet"))));
  EXPECT_THAT(model_advice(resnet("cifar"), images(224), 10, setting),
              Contains(Advises("model.stem=imagenet")));
  EXPECT_THAT(model_advice(resnet("auto"), images(32), 10, setting), IsEmpty());
  EXPECT_THAT(model_advice(resnet("auto"), images(224), 10, setting), IsEmpty());
  EXPECT_THAT(model_advice(resnet("imagenet"), images(64), 10, setting), IsEmpty());
}

wire::JobSpec gpt(uint32_t width, uint32_t heads, uint32_t vocab) {
  wire::JobSpec job;
  job.mutable_model()->set_name("gpt2");
  job.mutable_model()->set_n_embd(width);
  job.mutable_model()->set_n_head(heads);
  job.mutable_model()->set_vocab(vocab);
  job.mutable_model()->set_block(1024);
  return job;
}

Setting on_gpu(const char* precision) {
  Setting setting;
  setting.is_on_gpu = true;
  setting.precision = precision;
  return setting;
}

data::SampleShape tokens() {
  data::SampleShape shape;
  shape.tokens = 1024;
  return shape;
}

std::vector<std::string> advised(wire::JobSpec job, uint64_t classes, const Setting& setting) {
  job.mutable_train()->set_precision(setting.precision);
  return model_advice(job, tokens(), classes, setting);
}

// Figures by hand: 12 layers x 3 matrices of 4 sequences x 12 heads x 1,024 x 1,024 floats.
TEST(ModelAdvice, WaysThatAreSlowOnAGpuAreToldWithTheirCost) {
  wire::JobSpec job = gpt(768, 12, 50304);
  job.mutable_model()->set_n_layer(12);
  job.mutable_train()->set_global_batch(32);
  job.mutable_train()->set_slots(8);
  EXPECT_THAT(advised(job, 0, on_gpu("fp32")),
              ElementsAre(AllOf(Names("fp32", "6912 MiB"), Advises("train.precision=bf16"))));
  EXPECT_THAT(advised(job, 0, on_gpu("fp16")),
              ElementsAre(AllOf(Names("fp16"), Advises("train.precision=bf16"))));
  EXPECT_THAT(advised(job, 0, on_gpu("bf16")), IsEmpty());
  EXPECT_THAT(advised(job, 0, Setting()), IsEmpty()) << "on a CPU";
  job.mutable_comm()->set_numerics("fast");
  EXPECT_THAT(advised(job, 0, on_gpu("fp32")), IsEmpty());
}

TEST(ModelAdvice, SizesThatTensorCoresDoNotLikeAreNamedWithTheLayerAndTheCost) {
  EXPECT_THAT(
      advised(gpt(768, 12, 50257), 50257, on_gpu("bf16")),
      Contains(AllOf(Names("model.vocab", "50257"), Says("0.1 %"), Advises("model.vocab=50304"))));
  EXPECT_THAT(advised(gpt(768, 12, 0), 50257, on_gpu("fp16")),
              Contains(Advises("model.vocab=50304")))
      << "the data's";
  EXPECT_THAT(advised(gpt(780, 12, 50304), 0, on_gpu("bf16")),
              Contains(AllOf(Names("780"), Advises("model.n_embd=864"))))
      << "a multiple of the heads, too";
  EXPECT_THAT(advised(gpt(600, 12, 50304), 0, on_gpu("bf16")),
              Contains(AllOf(Says("50"), Says("56"), Advises("model.n_head=5"))));
  EXPECT_THAT(advised(gpt(768, 12, 50304), 0, on_gpu("bf16")), IsEmpty());
  EXPECT_THAT(advised(gpt(768, 12, 50257), 0, on_gpu("fp32")), Not(Contains(Names("model.vocab"))))
      << "no tensor core computes";
  EXPECT_THAT(advised(gpt(768, 12, 50257), 0, Setting()), IsEmpty()) << "on a CPU";
}

TEST(ModelAdvice, Fp8IsForWideModelsLongSlotsAndGpusThatHaveIt) {
  const auto advice = [](uint32_t width, uint64_t samples, const char* precision,
                         uint32_t capability) {
    Setting setting = on_gpu(precision);
    setting.slot_samples = samples;
    setting.gpu_capability = capability;
    wire::JobSpec job = gpt(width, width / 64, 50304);
    job.mutable_train()->set_precision(precision);
    return model_advice(job, tokens(), 0, setting);
  };
  EXPECT_THAT(advice(1600, 8, "bf16", 90), Contains(Advises("train.precision=fp8")));
  EXPECT_THAT(advice(1536, 8, "bf16", 89), Contains(Advises("train.precision=fp8")));
  EXPECT_THAT(advice(1600, 8, "bf16", 80), IsEmpty()) << "an A100";
  EXPECT_THAT(advice(1600, 8, "bf16", 0), IsEmpty()) << "not known";
  EXPECT_THAT(advice(1600, 7, "bf16", 90), IsEmpty()) << "7 x 1024 tokens";
  EXPECT_THAT(advice(1280, 8, "bf16", 90), IsEmpty());
  EXPECT_THAT(advice(1600, 8, "fp8", 90), IsEmpty());
  EXPECT_THAT(advice(768, 32, "fp8", 90),
              Contains(AllOf(Names("model.n_embd is 768", "1536"), Says("saves less"),
                             Advises("train.precision=bf16"))));
  EXPECT_THAT(advice(1600, 4, "fp8", 90),
              Contains(AllOf(Names("4096 tokens"), Advises("train.precision=bf16"))));
}

TEST(ModelAdvice, ThreadsThatTakeTurnsAreNamed) {
  Setting setting;
  setting.is_encoded = true;
  setting.data_threads = 8;
  setting.cores = 2;
  EXPECT_THAT(model_advice(resnet("imagenet"), images(224), 10, setting),
              Contains(AllOf(Names("data.threads is 8", "2 cores"), Advises("data.threads=2"))));
  setting.data_threads = 2;
  EXPECT_THAT(model_advice(resnet("imagenet"), images(224), 10, setting), IsEmpty());
}

TEST(ModelAdvice, SumsOfSlotsAreNamedWhereTheyAreTheLargestPartOfMemory) {
  wire::JobSpec job = resnet("imagenet");
  Setting setting;
  const auto advice = [&](const char* optimizer, double momentum, uint32_t slots,
                          uint32_t workers) {
    job.mutable_optimizer()->set_name(optimizer);
    job.mutable_optimizer()->set_momentum(momentum);
    setting.slots = slots;
    setting.workers = workers;
    return model_advice(job, images(224), 10, setting);
  };
  // adamw keeps 8 bytes: three sums of four slots take more, two of two slots do not.
  EXPECT_THAT(advice("adamw", 0, 4, 1),
              Contains(AllOf(Names("4 slots", "12 bytes"), Says("8 for the optimizer"),
                             Advises("train.slots=1"))));
  EXPECT_THAT(advice("adamw", 0, 2, 1), IsEmpty());
  EXPECT_THAT(advice("adamw", 0, 16, 4),
              Contains(AllOf(Names("4 slots", "12 bytes"), Advises("train.slots=4"))));
  EXPECT_THAT(advice("adamw", 0, 4, 4), IsEmpty());
  EXPECT_THAT(advice("sgd", 0.9, 2, 1), Contains(Names("2 slots", "8 bytes")));
  EXPECT_THAT(advice("sgd", 0, 8, 8), IsEmpty());
}

}  // namespace
}  // namespace lockstep::doctor
