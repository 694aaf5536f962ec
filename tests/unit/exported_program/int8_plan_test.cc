// Runs 8-bit programs and the float programs by the same interpreter.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/exported_program/int8/int8_program.h"
#include "worker/model/exported_program/write_program.h"
#include "worker/torch/plan/program_for_use.h"

namespace lockstep::exported {
namespace {

using testing::golden_path;

constexpr uint32_t kImageClasses = 10;
constexpr uint32_t kTokenClasses = 20;

struct UsedProgram {
  std::string name;
  bool is_of_tokens = false;

  data::SampleShape shape() const {
    data::SampleShape shape;
    if (is_of_tokens) {
      shape.tokens = 8;
      shape.token_bytes = 1;
    } else {
      shape.channels = 1;
      shape.height = shape.width = 8;
    }
    return shape;
  }
  uint32_t classes() const { return is_of_tokens ? kTokenClasses : kImageClasses; }
  at::Tensor batch(int64_t samples) const {
    return is_of_tokens ? at::randint(kTokenClasses, {samples, 8}, at::kLong)
                        : at::randn({samples, 1, 8, 8});
  }
};

// For evaluation, with the weights that it has.
std::string for_evaluation(const UsedProgram& used, const TemporaryDirectory& directory) {
  const std::string to = directory.path(used.name + ".pt2");
  const Status written = write_program(golden_path(used.name), to, true,
                                       [](auto&) { return Result(std::span<const uint8_t>()); });
  EXPECT_TRUE(written.is_ok()) << written.message();
  return to;
}

at::Tensor logits_of(const std::string& path, const UsedProgram& used, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const auto model = open_program_for_use(path, used.shape(), used.classes());
  EXPECT_TRUE(model.is_ok()) << used.name << ": " << model.status().message();
  if (!model.is_ok()) return {};
  EXPECT_TRUE((*model)->layout().parameters.empty());
  return (*model)->forward({.x = x}, {}, {}, {}).logits;
}

TEST(Int8Plan, GivesNearlyTheLogitsOfTheFloats) {
  const TemporaryDirectory directory;
  for (const UsedProgram& used :
       {UsedProgram{"mlp"}, UsedProgram{"convnet"}, UsedProgram{"unet"}, UsedProgram{"vit"},
        UsedProgram{"strided"}, UsedProgram{"regions"}, UsedProgram{"tied_lm", true}}) {
    const std::string floats = for_evaluation(used, directory);
    for (const Int8Form form : {Int8Form::kDynamic, Int8Form::kWeights}) {
      const std::string bits = directory.path(used.name + ".bits.pt2");
      const auto counts = write_int8_program(floats, bits, form);
      ASSERT_TRUE(counts.is_ok()) << counts.status().message();
      for (const int64_t samples : {1, 2, 5}) {
        const at::Tensor x = used.batch(samples);
        const at::Tensor wanted = logits_of(floats, used, x);
        const at::Tensor found = logits_of(bits, used, x);
        ASSERT_TRUE(wanted.defined() && found.defined());
        ASSERT_EQ(found.sizes(), wanted.sizes());
        const float off = found.sub(wanted).abs().max().item<float>();
        EXPECT_LT(off, 0.05F * wanted.abs().max().item<float>()) << used.name << " " << samples;
        EXPECT_GT(off, 0.0F) << used.name << ": it is in 8 bits";
      }
    }
  }
}

// A row of zeros has no scale of its own, and a row that is not finite stays one.
TEST(Int8Plan, RowsOfZerosAndOfNotANumber) {
  const TemporaryDirectory directory;
  const UsedProgram used{"mlp"};
  const std::string floats = for_evaluation(used, directory);
  const std::string bits = directory.path("bits.pt2");
  ASSERT_TRUE(write_int8_program(floats, bits, Int8Form::kDynamic).is_ok());
  at::Tensor x = used.batch(3);
  x.select(0, 0).zero_();
  x.select(0, 2).fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor found = logits_of(bits, used, x);
  const at::Tensor wanted = logits_of(floats, used, x);
  EXPECT_LT(found.select(0, 0).sub(wanted.select(0, 0)).abs().max().item<float>(), 0.02F);
  EXPECT_TRUE(found.select(0, 1).isfinite().all().item<bool>());
  EXPECT_TRUE(found.select(0, 2).isnan().all().item<bool>());
}

TEST(Int8Plan, AProgramForOtherDataIsRefused) {
  const UsedProgram images{"mlp"};
  UsedProgram tokens{"mlp", true};
  EXPECT_THAT(open_program_for_use(golden_path("mlp"), tokens.shape(), kTokenClasses),
              FailsWith(Code::kConfig, Names("mlp.pt2")));
  EXPECT_THAT(open_program_for_use(golden_path("mlp"), images.shape(), kImageClasses + 1),
              FailsWith(Code::kConfig, Names("mlp.pt2")));
}

}  // namespace
}  // namespace lockstep::exported
