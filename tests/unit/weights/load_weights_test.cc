#include "worker/model/weights/load_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/weights/weight_writer.h"

namespace lockstep {
namespace {

using testing::bytes_of_floats;
using testing::counting;
using testing::EmptyState;
using testing::weights_file;
using testing::WrittenTensor;
using Tensors = std::map<std::string, WrittenTensor>;
using Floats = std::vector<float>;

class LoadWeights : public ::testing::Test {
 protected:
  Result<WeightTable> load(const Tensors& tensors, const EmptyState& state,
                           const std::string& model = "mlp",
                           const std::vector<std::string>& skip = {}) {
    const std::string path = dir_.path("w.safetensors");
    write_file(path, weights_file(tensors));
    wire::ModelSpec spec;
    spec.set_name(model);
    spec.set_init(path);
    for (const std::string& pattern : skip) spec.add_init_skip(pattern);
    const auto files = WeightFiles::open(path, WeightSource::kInit);
    if (!files.is_ok()) return files.status();
    return load_weights(*files, spec, layout_, state.tensors());
  }

  TemporaryDirectory dir_;
  ModelLayout layout_;
};

WrittenTensor of_words(const std::string& type, const std::vector<uint16_t>& words) {
  return {type,
          {static_cast<int64_t>(words.size())},
          {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint16_t)}};
}

EmptyState one_tensor(int64_t size) {
  EmptyState state;
  state.add("w", {size});
  return state;
}

TEST_F(LoadWeights, FloatsComeAsTheyAre) {
  const EmptyState state = one_tensor(3);
  const auto table = load({{"w", counting({3}, 4)}}, state);
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(state.floats("w"), (Floats{4, 5, 6}));
  EXPECT_EQ(table->count(WeightFate::kRead), 1u);
}

TEST_F(LoadWeights, HalfPrecisionBecomesTheSameNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const EmptyState half = one_tensor(8);
  ASSERT_TRUE(load({{"w", of_words("F16", {0x3c00, 0xc000, 0x0001, 0x8001, 0x03ff, 0x7bff, 0xfc00,
                                           0x8000})}},
                   half)
                  .is_ok());
  EXPECT_EQ(half.floats("w"),
            (Floats{1, -2, 0x1p-24f, -0x1p-24f, 1023 * 0x1p-24f, 65504, -kInfinity, 0}));
  EXPECT_TRUE(std::signbit(half.floats("w")[7]));
  const EmptyState brain = one_tensor(3);
  ASSERT_TRUE(load({{"w", of_words("BF16", {0x3f80, 0xc040, 0x0001})}}, brain).is_ok());
  EXPECT_EQ(brain.floats("w"), (Floats{1, -3, 0x1p-133f}));
}

TEST_F(LoadWeights, OtherTypesAreRefused) {
  const EmptyState state = one_tensor(2);
  EXPECT_THAT(load({{"w", {"F64", {2}, std::string(16, 'a')}}}, state),
              FailsWith(Code::kConfig, Names("w", "F64")));
  EXPECT_THAT(load({{"w", {"I32", {2}, std::string(8, 'a')}}}, state),
              FailsWith(Code::kConfig, Names("w", "I32")));
}

TEST_F(LoadWeights, WhatIsMissingLeftOverOrOfAnotherShapeIsNamedAndNothingIsRead) {
  EmptyState state;
  state.add("same", {2}).add("fc.weight", {10, 4}).add("missing", {1});
  const Tensors files = {{"same", counting({2}, 7)},
                         {"fc.weight", counting({1000, 4}, 0)},
                         {"extra", counting({1}, 0)}};
  EXPECT_THAT(
      load(files, state),
      FailsWith(Code::kConfig, Names("fc.weight", "[10, 4]", "[1000, 4]", "missing", "extra"),
                Advises("model.init_skip")));
  EXPECT_EQ(state.floats("same"), (Floats{0, 0}));
  const auto table = load(files, state, "mlp", {"fc.*", "missing", "ext*"});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(state.floats("same"), (Floats{7, 8}));
  EXPECT_EQ(table->count(WeightFate::kSkipped), 3u);
  EXPECT_THAT(table->text(), ::testing::HasSubstr("1000"));
}

TEST_F(LoadWeights, APatternThatMatchesNothingIsRefused) {
  const EmptyState state = one_tensor(2);
  EXPECT_THAT(load({{"w", counting({2}, 0)}}, state, "mlp", {"fc.*"}),
              FailsWith(Code::kUsage, Names("model.init_skip", "fc.*")));
}

TEST_F(LoadWeights, StatisticsAreFlatAndACounterMayBeMissing) {
  EmptyState state;
  state.add("bn.running_mean", {4}, StateSection::kBuffer)
      .add("bn.num_batches_tracked", {}, StateSection::kBuffer, DType::kI64)
      .add("exp_avg.w", {2}, StateSection::kOptimizer);
  EXPECT_TRUE(load({{"bn.running_mean", counting({1, 4}, 2)}}, state).is_ok());
  EXPECT_EQ(state.floats("bn.running_mean"), (Floats{2, 3, 4, 5}));
  const Tensors with_counter = {
      {"bn.running_mean", counting({4}, 2)},
      {"bn.num_batches_tracked", {"I64", {}, std::string("\x09\0\0\0\0\0\0\0", 8)}}};
  EXPECT_TRUE(load(with_counter, state).is_ok());
  EXPECT_EQ(static_cast<int>(state.tensors()[1].data[0]), 9);
}

TEST_F(LoadWeights, ABufferOfAnotherShapeIsRefusedAndAFlatOneOfARunIsRead) {
  EmptyState state;
  state.add("table", {6}, StateSection::kBuffer);
  layout_.buffers = {{.name = "table", .size = 6, .shape = {2, 3}}};
  EXPECT_THAT(load({{"table", counting({3, 2}, 0)}}, state),
              FailsWith(Code::kConfig, Names("table", "[3, 2]")));
  EXPECT_TRUE(load({{"table", counting({2, 3}, 0)}}, state).is_ok());
  EXPECT_TRUE(load({{"table", counting({6}, 0)}}, state).is_ok());
}

TEST_F(LoadWeights, ATiedTensorMayHaveAnyOfItsNames) {
  EmptyState state;
  state.add("embed.weight", {2});
  layout_.parameters = {
      {.name = "embed.weight", .shape = {2}, .tied_names = {"head.weight", "out.weight"}}};
  for (const std::string name : {"embed.weight", "head.weight", "out.weight"}) {
    EXPECT_TRUE(load({{name, counting({2}, 7)}}, state).is_ok()) << name;
    EXPECT_EQ(state.floats("embed.weight"), (Floats{7, 8})) << name;
  }
  EXPECT_TRUE(
      load({{"embed.weight", counting({2}, 7)}, {"head.weight", counting({2}, 7)}}, state).is_ok());
  const Tensors differ = {{"embed.weight", counting({2}, 7)}, {"head.weight", counting({2}, 9)}};
  EXPECT_THAT(load(differ, state), FailsWith(Code::kConfig, Names("embed.weight", "head.weight")));
  EXPECT_TRUE(load(differ, state, "mlp", {"head.weight"}).is_ok());
  EXPECT_EQ(state.floats("embed.weight"), (Floats{7, 8}));
}

// A full state dict holds it too, but what the program fixes cannot come from there.
TEST_F(LoadWeights, AConstantOfTheProgramMustBeTheSameInTheFiles) {
  const EmptyState state = one_tensor(1);
  const std::vector<float> fixed = {3, 4};
  layout_.constants = {{{"gain"}, "F32", {2}, [fixed] {
                          const auto* bytes = reinterpret_cast<const uint8_t*>(fixed.data());
                          return std::vector<uint8_t>(bytes, bytes + 2 * sizeof(float));
                        }}};
  Tensors files = {{"w", counting({1}, 0)}};
  auto table = load(files, state);
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(table->count(WeightFate::kKept), 1U);
  EXPECT_THAT(table->summary(), ::testing::HasSubstr("gain"));
  files["gain"] = counting({2}, 3);
  table = load(files, state);
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(table->count(WeightFate::kSame), 1U);
  for (const WrittenTensor& other : {counting({2}, 4), counting({1, 2}, 3)}) {
    files["gain"] = other;
    EXPECT_THAT(load(files, state), FailsWith(Code::kConfig, Names("gain"), Says("value")));
    EXPECT_EQ(load(files, state, "mlp", {"gain"})->count(WeightFate::kSkipped), 1U);
  }
}

TEST_F(LoadWeights, TorchvisionsWeightsNeedItsStem) {
  EmptyState state;
  state.add("conv1.weight", {64, 3, 3, 3});
  EXPECT_THAT(load({{"conv1.weight", counting({64, 3, 7, 7}, 0)}}, state, "resnet18"),
              FailsWith(Code::kConfig, Names("conv1.weight"), Advises("model.stem: imagenet")));
}

// GPT-2 of width 2 with one block's matrices.
EmptyState gpt2_state() {
  EmptyState state;
  state.add("wte.weight", {3, 2})
      .add("wpe.weight", {2, 2})
      .add("h.0.attn.c_attn.weight", {6, 2})
      .add("h.0.attn.c_attn.bias", {6})
      .add("h.0.attn.c_proj.weight", {2, 2})
      .add("h.0.mlp.c_fc.weight", {8, 2});
  return state;
}

Tensors hugging_face(const std::string& prefix) {
  return {{prefix + "wte.weight", counting({3, 2}, 1)},
          {prefix + "wpe.weight", counting({5, 2}, 10)},
          {prefix + "h.0.attn.c_attn.weight", counting({2, 6}, 20)},
          {prefix + "h.0.attn.c_attn.bias", counting({6}, 40)},
          {prefix + "h.0.attn.c_proj.weight", counting({2, 2}, 50)},
          {prefix + "h.0.mlp.c_fc.weight", counting({2, 8}, 60)},
          {prefix + "h.0.attn.bias", counting({1, 1, 4, 4}, 0)},
          {prefix + "h.0.attn.masked_bias", counting({1}, 0)},
          {"lm_head.weight", counting({3, 2}, 1)}};
}

TEST_F(LoadWeights, HuggingFacesGpt2IsTurned) {
  for (const std::string prefix : {"", "transformer."}) {
    const EmptyState state = gpt2_state();
    const auto table = load(hugging_face(prefix), state, "gpt2");
    ASSERT_TRUE(table.is_ok()) << table.status().message();
    EXPECT_EQ(state.floats("h.0.attn.c_proj.weight"), (Floats{50, 52, 51, 53}));
    EXPECT_EQ(state.floats("h.0.attn.c_attn.weight"),
              (Floats{20, 26, 21, 27, 22, 28, 23, 29, 24, 30, 25, 31}));
    EXPECT_EQ(state.floats("wpe.weight"), (Floats{10, 11, 12, 13}));  // the first rows
    EXPECT_EQ(table->count(WeightFate::kCut), 1u);
    EXPECT_THAT(table->summary(), ::testing::HasSubstr("wpe.weight"));
  }
}

TEST_F(LoadWeights, OurOwnGpt2IsNotTurned) {
  const EmptyState state = gpt2_state();
  Tensors files = {{"wte.weight", counting({3, 2}, 1)},
                   {"wpe.weight", counting({2, 2}, 10)},
                   {"h.0.attn.c_attn.weight", counting({6, 2}, 20)},
                   {"h.0.attn.c_attn.bias", counting({6}, 40)},
                   {"h.0.attn.c_proj.weight", counting({2, 2}, 50)},
                   {"h.0.mlp.c_fc.weight", counting({8, 2}, 60)}};
  ASSERT_TRUE(load(files, state, "gpt2").is_ok());
  EXPECT_EQ(state.floats("h.0.attn.c_proj.weight"), (Floats{50, 51, 52, 53}));
  files.erase("h.0.attn.c_attn.weight");
  EXPECT_THAT(load(files, state, "gpt2"), FailsWith(Code::kConfig, Names("c_attn.weight")));
}

TEST_F(LoadWeights, APatternMayMeanTheNameThatTheFileHas) {
  Tensors files = hugging_face("transformer.");
  files["transformer.extra"] = counting({1}, 0);
  EXPECT_THAT(load(files, gpt2_state(), "gpt2"), FailsWith(Code::kConfig, Names("extra")));
  const auto table = load(files, gpt2_state(), "gpt2", {"transformer.extra"});
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  EXPECT_EQ(table->count(WeightFate::kSkipped), 1u);
}

// The copy may be torn.
TEST_F(LoadWeights, AFileThatChangesWhileItIsReadIsRefused) {
  const EmptyState state = one_tensor(2);
  const std::string path = dir_.path("w.safetensors");
  write_file(path, weights_file({{"w", counting({2}, 1)}}));
  wire::ModelSpec spec;
  spec.set_name("mlp");
  spec.set_init(path);
  const auto files = WeightFiles::open(path, WeightSource::kInit);
  ASSERT_TRUE(files.is_ok());
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_THAT(load_weights(*files, spec, layout_, state.tensors()),
              FailsWith(Code::kBadData, Names(path)));
}

// A checkpoint of the run has everything: model.init_skip is of the run's beginning only.
TEST_F(LoadWeights, WeightsOfARunLackNothingThatItsBeginningSkipped) {
  EmptyState state;
  state.add("w", {2}).add("fc.weight", {2});
  const std::string path = dir_.path("w.safetensors");
  wire::ModelSpec spec;
  spec.set_name("mlp");
  spec.add_init_skip("fc.*");
  write_file(path, weights_file({{"w", counting({2}, 1)}, {"fc.weight", counting({2}, 5)}}));
  EXPECT_TRUE(load_own_weights(path, spec, state.tensors()).is_ok());
  EXPECT_EQ(state.floats("fc.weight"), (Floats{5, 6}));
  write_file(path, weights_file({{"w", counting({2}, 1)}}));
  EXPECT_THAT(load_own_weights(path, spec, state.tensors()),
              FailsWith(Code::kBadData, Names(path, "fc.weight")));
  spec.set_name("gpt2");
  write_file(path, weights_file({{"w", counting({2}, 1)}, {"transformer.w", counting({2}, 5)}}));
  EXPECT_THAT(load_own_weights(path, spec, state.tensors()),
              FailsWith(Code::kBadData, Names(path, "transformer.w")));
}

TEST_F(LoadWeights, AHeadOfItsOwnIsLeftOver) {
  Tensors files = hugging_face("transformer.");
  files["lm_head.weight"] = counting({3, 2}, 2);
  EXPECT_THAT(load(files, gpt2_state(), "gpt2"), FailsWith(Code::kConfig, Names("lm_head.weight")));
}

TEST_F(LoadWeights, OneNameTwiceIsRefused) {
  Tensors files = hugging_face("transformer.");
  files["wte.weight"] = counting({3, 2}, 1);
  EXPECT_THAT(load(files, gpt2_state(), "gpt2"), FailsWith(Code::kBadData, Names("wte.weight")));
}

TEST_F(LoadWeights, AnotherVocabularyIsAdvised) {
  Tensors files = hugging_face("");
  files["wte.weight"] = counting({9, 2}, 1);
  files.erase("lm_head.weight");
  EXPECT_THAT(load(files, gpt2_state(), "gpt2"),
              FailsWith(Code::kConfig, Names("wte.weight"), Advises("model.vocab")));
}

// Tests files as lockstep export model --int8 writes them.
class OwnInt8Weights : public ::testing::Test {
 protected:
  Status load(const Tensors& tensors, const EmptyState& state) {
    const std::string path = dir_.path("model.int8.safetensors");
    write_file(path, weights_file(tensors));
    wire::ModelSpec spec;
    spec.set_name("mlp");
    return load_own_weights(path, spec, state.tensors());
  }
  static WrittenTensor numbers(std::vector<int64_t> shape, const std::vector<int8_t>& values) {
    return {"I8", std::move(shape), {values.begin(), values.end()}};
  }

  TemporaryDirectory dir_;
};

TEST_F(OwnInt8Weights, AreNumbersTimesTheScalesOfTheirChannels) {
  EmptyState state;
  state.add("w", {2, 3}).add("b", {2});
  const Status rows = load({{"w", numbers({2, 3}, {1, -2, 127, 0, -127, 5})},
                            {"w_scale", {"F32", {2, 1}, bytes_of_floats({0.5F, 2})}},
                            {"b", counting({2}, 7)}},
                           state);
  ASSERT_TRUE(rows.is_ok()) << rows.message();
  EXPECT_EQ(state.floats("w"), (Floats{0.5F, -1, 63.5F, 0, -254, 10}));
  EXPECT_EQ(state.floats("b"), (Floats{7, 8}));
  const Status columns = load({{"w", numbers({2, 3}, {1, -2, 127, 0, -127, 5})},
                               {"w_scale", {"F32", {1, 3}, bytes_of_floats({1, 2, 0.5F})}},
                               {"b", counting({2}, 7)}},
                              state);
  ASSERT_TRUE(columns.is_ok()) << columns.message();
  EXPECT_EQ(state.floats("w"), (Floats{1, -4, 63.5F, 0, -254, 2.5F}));
}

TEST_F(OwnInt8Weights, WithoutTheirScalesAreRefused) {
  EmptyState state;
  state.add("w", {2, 3});
  const WrittenTensor w = numbers({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto refused = FailsWith(Code::kBadData, Names("w_scale"), Advises("export the model"));
  EXPECT_THAT(load({{"w", w}}, state), refused);
  EXPECT_THAT(load({{"w", w}, {"w_scale", counting({2}, 1)}}, state), refused);
  EXPECT_THAT(load({{"w", w}, {"w_scale", counting({2, 3}, 1)}}, state), refused);
  EXPECT_THAT(load({{"w", w}, {"w_scale", numbers({2, 1}, {1, 1})}}, state), refused);
}

}  // namespace
}  // namespace lockstep
