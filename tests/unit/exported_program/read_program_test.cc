// Tests what PyTorch's golden programs hold, and which of them are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/fails_with.h"
#include "tests/unit/exported_program/golden_program.h"

namespace lockstep::exported {
namespace {

using testing::golden_path;

std::shared_ptr<const Program> golden(const std::string& name) {
  auto program = read_program(golden_path(name));
  EXPECT_TRUE(program.is_ok()) << program.status().message();
  return program.is_ok() ? *program : std::make_shared<const Program>();
}

const ProgramNode* find_node(const ProgramGraph& graph, const std::string& target) {
  const auto found = std::ranges::find(graph.nodes, target, &ProgramNode::target);
  return found == graph.nodes.end() ? nullptr : &*found;
}

const ProgramTensor* find_tensor(const Program& program, const std::string& name) {
  const auto found =
      std::ranges::find_if(program.tensors, [&](const auto& t) { return t.name() == name; });
  return found == program.tensors.end() ? nullptr : &*found;
}

TEST(ReadProgram, ReadsInputsNodesAndOutputsOfAnMlp) {
  const auto program = golden("mlp");
  ASSERT_EQ(program->tensors.size(), 4u);
  EXPECT_EQ(program->tensors[0].names, std::vector<std::string>{"fc1.weight"});
  EXPECT_EQ(program->tensors[0].shape, (std::vector<int64_t>{32, 64}));
  EXPECT_TRUE(program->tensors[0].requires_grad);
  ASSERT_EQ(program->user_inputs.size(), 1u);
  EXPECT_EQ(program->user_inputs[0].name, "x");
  ASSERT_EQ(program->user_inputs[0].shape.size(), 4u);
  EXPECT_EQ(program->user_inputs[0].shape[0].sizes, (SizeRange{1, 64}));
  EXPECT_EQ(program->user_inputs[0].shape[3].sizes, (SizeRange{8, 8}));
  EXPECT_EQ(program->samples, (SizeRange{1, 64}));
  ASSERT_EQ(program->graph.nodes.size(), 4u);
  const ProgramNode& last = program->graph.nodes.back();
  EXPECT_EQ(last.target, "torch.ops.aten.linear.default");
  EXPECT_EQ(last.arguments[0].name, "input");
  ASSERT_EQ(last.modules.size(), 2u);
  EXPECT_EQ(last.modules.back().path, "fc2");
  EXPECT_EQ(last.modules.back().type, "torch.nn.modules.linear.Linear");
  EXPECT_EQ(last.user_line,
            "models.py, line 16: return self.fc2(torch.relu(self.fc1(x.flatten(1))))");
  ASSERT_EQ(program->outputs.size(), 1u);
  EXPECT_EQ(program->outputs[0].name, "");
  EXPECT_EQ(program->outputs[0].value, last.outputs[0].values[0]);
  EXPECT_EQ(program->sha256.size(), 64u);
  EXPECT_TRUE(program->torch_version.starts_with("2."));
}

// The values that `node` takes by themselves, and not in a list.
std::vector<uint32_t> taken_by(const ProgramNode& node) {
  std::vector<uint32_t> taken;
  for (const NamedArgument& argument : node.arguments) {
    if (const auto* value = std::get_if<ValueRef>(&argument.value)) taken.push_back(value->value);
  }
  return taken;
}

TEST(ReadProgram, EveryValueIsDefinedOnceAndBeforeItsUse) {
  for (const char* name : {"mlp", "tied_lm", "convnet", "unet", "vit", "stochastic_depth",
                           "stochastic_depth.eval", "counted", "sparse_embedding", "in_place_input",
                           "strided", "from_two", "named", "regions", "refused_writes_weight"}) {
    const auto program = golden(name);
    size_t defined = program->graph.inputs.size();
    for (const ProgramNode& node : program->graph.nodes) {
      for (const uint32_t value : taken_by(node)) EXPECT_LT(value, defined) << name;
      for (const NodeOutput& output : node.outputs) defined += output.values.size();
    }
    EXPECT_EQ(defined, program->graph.values.size()) << name;
  }
}

TEST(ReadProgram, TiedParametersAreOneTensor) {
  const auto program = golden("tied_lm");
  EXPECT_EQ(program->tensors[0].names, (std::vector<std::string>{"embed.weight", "head.weight"}));
  const auto head = std::ranges::find(program->inputs, "head.weight", &ProgramInput::name);
  ASSERT_NE(head, program->inputs.end());
  EXPECT_EQ(head->tensor, 0u);
  EXPECT_EQ(program->user_inputs[0].dtype, ProgramDtype::kLong);
  const ProgramNode* attention =
      find_node(program->graph, "torch.ops.aten.scaled_dot_product_attention.default");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(find_node(program->graph, "torch.ops.aten.split.Tensor")->outputs[0].kind,
            NodeOutput::Kind::kTensors);
}

TEST(ReadProgram, RegionsHaveGraphsOfTheirOwn) {
  const auto program = golden("regions");
  const auto autocast =
      std::ranges::find(program->graph.nodes, NodeKind::kAutocast, &ProgramNode::kind);
  ASSERT_NE(autocast, program->graph.nodes.end());
  EXPECT_EQ(std::get<std::string>(autocast->arguments[0].value), "cpu");
  EXPECT_EQ(std::get<ProgramDtype>(autocast->arguments[1].value), ProgramDtype::kBfloat16);
  const auto& graph = *std::get<std::shared_ptr<const ProgramGraph>>(autocast->arguments[4].value);
  EXPECT_EQ(graph.inputs.size(), autocast->arguments.size() - 5);
  EXPECT_NE(find_node(graph, "torch.ops.aten.linear.default"), nullptr);
  const auto scale = std::ranges::find(program->inputs, "scale", &ProgramInput::name);
  ASSERT_NE(scale, program->inputs.end());
  EXPECT_FALSE(program->tensors[scale->tensor].is_persistent);
  EXPECT_TRUE(std::ranges::any_of(program->inputs, [](const ProgramInput& input) {
    return input.kind == InputKind::kConstant;
  }));
}

TEST(ReadProgram, OutputsOfADictionaryHaveNames) {
  const auto program = golden("named");
  ASSERT_EQ(program->outputs.size(), 3u);
  EXPECT_EQ(program->outputs[0].name, "logits");
  EXPECT_EQ(program->outputs[1].name, "more.0");
  EXPECT_EQ(program->outputs[2].name, "more.1.0");
}

TEST(ReadProgram, StridedWeightsAreGatheredRowByRow) {
  const auto program = golden("strided");
  for (const char* name : {"wide.weight", "fc.weight"}) {
    const ProgramTensor* tensor = find_tensor(*program, name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_FALSE(tensor->is_row_major()) << name;
    const auto floats = row_major_floats(*tensor);
    const auto* stored = reinterpret_cast<const float*>(tensor->bytes.data());
    std::vector<int64_t> at(tensor->shape.size(), 0);
    for (uint64_t i = 0; i < tensor->elements(); ++i) {
      uint64_t rest = i;
      int64_t place = 0;
      for (size_t d = at.size(); d-- > 0;) {
        place += static_cast<int64_t>(rest % static_cast<uint64_t>(tensor->shape[d])) *
                 tensor->strides[d];
        rest /= static_cast<uint64_t>(tensor->shape[d]);
      }
      ASSERT_EQ(std::memcmp(floats.get() + i, stored + place, sizeof(float)), 0) << name << i;
    }
  }
}

TEST(ReadProgram, RowMajorWeightsPointIntoTheFile) {
  std::shared_ptr<const float> weight;
  {
    const auto program = golden("mlp");
    weight = row_major_floats(program->tensors[0]);
    EXPECT_EQ(static_cast<const void*>(weight.get()), program->tensors[0].bytes.data());
  }
  float sum = 0;  // the mapping lives as long as the pointer
  for (size_t i = 0; i < size_t{32} * 64; ++i) sum += weight.get()[i] * weight.get()[i];
  EXPECT_GT(sum, 0);
}

TEST(ReadProgram, RefusesWhatItCannotTrainBySubjectAndRemedy) {
  const auto refused = [](const std::string& name) {
    return read_program(golden_path("refused_" + name));
  };
  EXPECT_THAT(refused("foreign_operator"),
              FailsWith(Code::kConfig,
                        Names("refused_foreign_operator.pt2", "mylib.twice", "refused.py, line",
                              "torch.ops.mylib.twice(super()"),
                        Advises("operators of PyTorch")));
  EXPECT_THAT(refused("from_file"),
              FailsWith(Code::kConfig, Names("aten.from_file"), Advises("other operators")));
  EXPECT_THAT(refused("weight_views"),
              FailsWith(Code::kConfig, Names("part", "whole"), Advises("clone()")));
  EXPECT_THAT(refused("branches"),
              FailsWith(Code::kConfig, Names("higher_order.cond"), Advises("write the line")));
  EXPECT_THAT(refused("double_weight"),
              FailsWith(Code::kConfig, Names("fc.weight", "float64"), Advises("model.float()")));
  EXPECT_THAT(refused("decomposed"), FailsWith(Code::kConfig, Names("run_decompositions"),
                                               Advises("torch.export.export()")));
  EXPECT_THAT(refused("big_endian"),
              FailsWith(Code::kConfig, Names("big"), Advises("little-endian")));
  EXPECT_THAT(refused("schema"), FailsWith(Code::kConfig, Names("9.0"), Advises("torch 2.11")));
  EXPECT_THAT(refused("guard"), FailsWith(Code::kConfig, Names("L['x'].size()[0] % 2 == 0"),
                                          Advises("write the model")));
  EXPECT_THAT(refused("pickled"),
              FailsWith(Code::kConfig, Names("fc.bias", "pickle"), Advises("plain tensor")));
  EXPECT_THAT(refused("not_there"), FailsWith(Code::kNoInput, Names("refused_not_there.pt2")));
}

TEST(ReadProgram, BatchesMustBeInTheExportedRange) {
  const auto from_two = golden("from_two");
  EXPECT_EQ(from_two->samples.min, 2);
  EXPECT_TRUE(check_batch_size(*from_two, "m.pt2", 1'000'000, "a slot").is_ok());
  EXPECT_THAT(check_batch_size(*from_two, "m.pt2", 1, "the last slot of an epoch"),
              FailsWith(Code::kConfig, Names("m.pt2", "2 samples or more", "the last slot"),
                        Advises("min=1")));
  const auto mlp = golden("mlp");
  EXPECT_TRUE(check_batch_size(*mlp, "m.pt2", 64, "a slot").is_ok());
  EXPECT_THAT(check_batch_size(*mlp, "m.pt2", 2000, "a slot"),
              FailsWith(Code::kConfig, Names("1 to 64", "2000"), Advises("max=2000")));
}

}  // namespace
}  // namespace lockstep::exported
