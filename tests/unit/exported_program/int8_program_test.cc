// Programs with weights in 8 bits, as Lockstep's own reader finds them again.
#include "worker/model/exported_program/int8/int8_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/exported_program/golden_program.h"
#include "worker/model/exported_program/int8/weight_uses.h"
#include "worker/model/exported_program/write_program.h"
#include "worker/model/int8/int8_values.h"

namespace lockstep::exported {
namespace {

using testing::golden_path;

constexpr const char* kPrograms[] = {"mlp", "strided", "tied_lm",     "convnet",         "unet",
                                     "vit", "regions", "in_autocast", "sparse_embedding"};

struct InBits {
  std::shared_ptr<const Program> floats;
  std::shared_ptr<const Program> program;
  Int8Counts counts;
};

InBits in_bits(const std::string& name, Int8Form form, const std::string& to) {
  InBits out;
  const auto counts = write_int8_program(golden_path(name), to, form);
  EXPECT_TRUE(counts.is_ok()) << name << ": " << counts.status().message();
  if (!counts.is_ok()) return out;
  out.counts = *counts;
  const auto floats = read_program(golden_path(name));
  const auto program = read_program(to);
  EXPECT_TRUE(program.is_ok()) << name << ": " << program.status().message();
  if (!floats.is_ok() || !program.is_ok()) return out;
  out.floats = *floats;
  out.program = *program;
  return out;
}

const ProgramTensor* find(const Program& program, const std::string& name) {
  const auto at = std::ranges::find_if(program.tensors, [&](const ProgramTensor& tensor) {
    return std::ranges::find(tensor.names, name) != tensor.names.end();
  });
  return at == program.tensors.end() ? nullptr : &*at;
}

int64_t calls(const Program& program, const std::string& target) {
  return std::ranges::count(program.graph.nodes, "torch.ops.aten." + target, &ProgramNode::target);
}

TEST(Int8Program, HoldsNumbersAndScalesInPlaceOfEachWeight) {
  const TemporaryDirectory directory;
  for (const std::string name : kPrograms) {
    const InBits made = in_bits(name, Int8Form::kWeights, directory.path("model.pt2"));
    ASSERT_NE(made.program, nullptr) << name;
    const auto weights = find_int8_weights(*made.floats);
    ASSERT_FALSE(weights.empty()) << name;
    EXPECT_EQ(made.counts.tensors, weights.size());
    for (const Int8Weight& weight : weights) {
      const ProgramTensor& before = made.floats->tensors[weight.tensor];
      for (const std::string& old : before.names)
        EXPECT_EQ(find(*made.program, old), nullptr) << name << ": " << old;
      const ProgramTensor* numbers = find(*made.program, before.name() + "_int8");
      const ProgramTensor* scales = find(*made.program, before.name() + "_scale");
      ASSERT_TRUE(numbers != nullptr && scales != nullptr) << name << ": " << before.name();
      EXPECT_EQ(numbers->dtype, ProgramDtype::kChar);
      EXPECT_EQ(numbers->shape, before.shape);
      EXPECT_FALSE(numbers->is_parameter || scales->is_parameter);
      const ChannelExtents extents = extents_along(before.shape, weight.channel_dim);
      ASSERT_EQ(scales->elements(), extents.channels);
      std::vector<int8_t> whole(numbers->elements());
      gather(*numbers, reinterpret_cast<uint8_t*>(whole.data()));
      std::vector<float> by_channel(extents.channels);
      gather(*scales, reinterpret_cast<uint8_t*>(by_channel.data()));
      std::vector<float> floats(before.elements());
      from_int8(whole, by_channel, extents, floats);
      const auto wanted = row_major_floats(before);
      const float most = *std::ranges::max_element(by_channel);
      for (size_t i = 0; i < floats.size(); ++i)
        ASSERT_LE(std::fabs(floats[i] - wanted.get()[i]), most * 0.501F) << before.name();
    }
  }
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"model.pt2"});
}

TEST(Int8Program, TakesAndGivesWhatTheProgramDid) {
  const TemporaryDirectory directory;
  for (const Int8Form form : {Int8Form::kDynamic, Int8Form::kWeights})
    for (const std::string name : kPrograms) {
      const InBits made = in_bits(name, form, directory.path("model.pt2"));
      ASSERT_NE(made.program, nullptr) << name;
      EXPECT_EQ(made.program->user_inputs.size(), made.floats->user_inputs.size());
      EXPECT_EQ(made.program->samples, made.floats->samples);
      EXPECT_EQ(made.program->outputs.size(), made.floats->outputs.size());
      // A tensor that is not in 8 bits is there as it was.
      for (const ProgramTensor& tensor : made.floats->tensors) {
        const ProgramTensor* same = find(*made.program, tensor.name());
        if (same == nullptr) continue;
        EXPECT_EQ(same->shape, tensor.shape);
        EXPECT_TRUE(std::ranges::equal(same->bytes, tensor.bytes)) << tensor.name();
      }
    }
}

TEST(Int8Program, MultipliesWholeNumbersInTheDynamicFormOnly) {
  const TemporaryDirectory directory;
  const InBits dynamic = in_bits("mlp", Int8Form::kDynamic, directory.path("dynamic.pt2"));
  const InBits weights = in_bits("mlp", Int8Form::kWeights, directory.path("weights.pt2"));
  ASSERT_TRUE(dynamic.program != nullptr && weights.program != nullptr);
  EXPECT_EQ(dynamic.counts.products, 2u);
  EXPECT_EQ(calls(*dynamic.program, "_int_mm.default"), 2);
  EXPECT_EQ(calls(*dynamic.program, "linear.default"), 0);
  EXPECT_EQ(weights.counts.products, 2u);
  EXPECT_EQ(calls(*weights.program, "_int_mm.default"), 0);
  EXPECT_EQ(calls(*weights.program, "linear.default"), 2);
}

// An embedding that is the last layer, too.
TEST(Int8Program, ATiedWeightIsHeldOnceForBothUses) {
  const TemporaryDirectory directory;
  const InBits made = in_bits("tied_lm", Int8Form::kDynamic, directory.path("model.pt2"));
  ASSERT_NE(made.program, nullptr);
  int tied = 0;
  for (const ProgramTensor& tensor : made.program->tensors)
    tied += tensor.dtype == ProgramDtype::kChar && tensor.shape == std::vector<int64_t>{20, 16};
  EXPECT_EQ(tied, 1);
  EXPECT_EQ(made.counts.gathers, 2u);   // tokens and places
  EXPECT_EQ(made.counts.products, 3u);  // qkv, out, head
  EXPECT_EQ(made.counts.floats, 0u);
}

TEST(Int8Program, ConvolutionsTakeFloatsThatAreMadeOnce) {
  const TemporaryDirectory directory;
  const InBits made = in_bits("unet", Int8Form::kDynamic, directory.path("model.pt2"));
  ASSERT_NE(made.program, nullptr);
  EXPECT_EQ(made.counts.products, 0u);
  EXPECT_EQ(made.counts.floats, made.counts.tensors);
  EXPECT_EQ(calls(*made.program, "to.dtype"), made.counts.tensors);
  EXPECT_EQ(calls(*made.program, "conv2d.default"), calls(*made.floats, "conv2d.default"));
}

TEST(Int8Program, TheSameWeightsMakeTheSameFileInBits) {
  const TemporaryDirectory directory;
  for (const char* name : {"a", "b"}) in_bits("vit", Int8Form::kDynamic, directory.path(name));
  EXPECT_EQ(slurp(directory.path("a")), slurp(directory.path("b")));
}

TEST(Int8Program, WeightsThatAreNotFiniteLeaveNoFile) {
  const TemporaryDirectory directory;
  const std::string floats = directory.path("floats.pt2");
  std::vector<float> values(64 * 32, 1);
  values[77] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(write_program(golden_path("mlp"), floats, false,
                            [&](const std::string& name) -> Result<std::span<const uint8_t>> {
                              if (name != "fc1.weight") return std::span<const uint8_t>();
                              return std::span(reinterpret_cast<const uint8_t*>(values.data()),
                                               values.size() * sizeof(float));
                            })
                  .is_ok());
  EXPECT_THAT(write_int8_program(floats, directory.path("model.pt2"), Int8Form::kWeights),
              FailsWith(Code::kBadData, Names("fc1.weight", "NaN"), Advises("--int8")));
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"floats.pt2"});
}

TEST(Int8Program, WhatIsNoProgramIsRefused) {
  const TemporaryDirectory directory;
  const std::string to = directory.path("model.pt2");
  write_file(directory.path("text"), "no archive");
  EXPECT_FALSE(write_int8_program(directory.path("text"), to, Int8Form::kWeights).is_ok());
  EXPECT_THAT(write_int8_program(directory.path("none"), to, Int8Form::kWeights),
              FailsWith(Code::kNoInput, Names("none")));
  EXPECT_EQ(names_in(directory.path()), std::vector<std::string>{"text"});
}

}  // namespace
}  // namespace lockstep::exported
