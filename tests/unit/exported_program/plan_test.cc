// Plans of programs that are made here: conversions of arguments, and programs that somebody wrote
// to harm. No program of these can crash: each is refused when it is compiled, or throws.
#include "worker/torch/plan/plan.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/fails_with.h"
#include "worker/torch/plan/numbers.h"

namespace lockstep::exported {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// A program of one float input x, and what its nodes give.
class Made {
 public:
  Made() {
    program_.graph.values.push_back({"x", ValueKind::kTensor});
    program_.graph.inputs.push_back({0});
    program_.inputs.push_back({.kind = InputKind::kUser,
                               .name = "x",
                               .value = ValueRef{0},
                               .tensor = 0,
                               .user_input = 0});
    UserInput& x = program_.user_inputs.emplace_back();
    x.name = "x";
    x.device = {"cpu", std::nullopt};
  }

  static ValueRef x() { return {0}; }
  ValueRef value(ValueKind kind = ValueKind::kTensor) {
    program_.graph.values.push_back({"", kind});
    return {static_cast<uint32_t>(program_.graph.values.size() - 1)};
  }
  // A node with one result.
  ValueRef call(const std::string& target, std::vector<NamedArgument> arguments,
                ValueKind kind = ValueKind::kTensor) {
    const ValueRef out = value(kind);
    ProgramNode& node = add(target, std::move(arguments));
    node.outputs.push_back({NodeOutput::Kind::kValue, {out}});
    return out;
  }
  ProgramNode& add(const std::string& target, std::vector<NamedArgument> arguments) {
    ProgramNode& node = program_.graph.nodes.emplace_back();
    const bool is_operator = target.starts_with("torch.ops.");
    node.kind = is_operator ? NodeKind::kOperator : NodeKind::kPython;
    node.target = target;
    node.user_line = "model.py, line 9: y = f(x)";
    node.arguments = std::move(arguments);
    return node;
  }

  Result<ProgramPlan> compile(ValueRef output, at::Device where = at::kCPU) {
    program_.outputs.push_back({"", output});
    ProgramPlan::Options options;
    options.where = where;
    return ProgramPlan::compile(std::make_shared<const Program>(program_), options);
  }
  at::Tensor run(ValueRef output, const at::Tensor& input) {
    const auto plan = compile(output);
    EXPECT_TRUE(plan.is_ok()) << plan.status().message();
    return plan->run(std::vector<at::Tensor>{input})[0];
  }

 private:
  Program program_;
};

const std::string kAdd = "torch.ops.aten.add.Tensor";

TEST(ProgramPlan, ANumberBesideATensorDoesNotDecideTheType) {
  Made made;
  const ValueRef sum = made.call(kAdd, {{"self", Made::x()}, {"other", 0.5}});
  EXPECT_EQ(made.run(sum, at::arange(3, at::kLong)).scalar_type(), at::kFloat);
  Made whole;
  const ValueRef product =
      whole.call("torch.ops.aten.mul.Tensor", {{"self", Made::x()}, {"other", int64_t{2}}});
  const at::Tensor out = whole.run(product, at::arange(3, at::kShort));
  EXPECT_EQ(out.scalar_type(), at::kShort);
  EXPECT_EQ(out[2].item<int64_t>(), 4);
}

// A size that was read from a tensor is a number like any other.
TEST(ProgramPlan, SizesAreNumbersOfTheRun) {
  Made made;
  const ValueRef rows = made.call("torch.ops.aten.sym_size.int",
                                  {{"self", Made::x()}, {"dim", int64_t{0}}}, ValueKind::kInt);
  const ValueRef twice =
      made.call("_operator.mul", {{"a", rows}, {"b", int64_t{2}}}, ValueKind::kInt);
  const ValueRef flat =
      made.call("torch.ops.aten.view.default",
                {{"self", Made::x()}, {"size", std::vector<IntOrRef>{twice, int64_t{2}}}});
  const ValueRef scaled = made.call("torch.ops.aten.div.Tensor", {{"self", flat}, {"other", rows}});
  const at::Tensor out = made.run(scaled, at::ones({3, 4}));
  EXPECT_EQ(out.sizes(), at::IntArrayRef({6, 2}));
  EXPECT_FLOAT_EQ(out[0][0].item<float>(), 1.0F / 3);
}

TEST(ProgramPlan, OneNumberStandsForAListOfAFixedSize) {
  Made made;
  const ValueRef pooled = made.call("torch.ops.aten.max_pool2d.default",
                                    {{"self", Made::x()}, {"kernel_size", int64_t{2}}});
  EXPECT_EQ(made.run(pooled, at::ones({1, 1, 4, 4})).sizes(), at::IntArrayRef({1, 1, 2, 2}));
}

// The export's device becomes the engine's.
TEST(ProgramPlan, TensorsAreMadeOnTheDeviceOfTheRun) {
  Made made;
  const ValueRef zeros = made.call(
      "torch.ops.aten.zeros.default",
      {{"size", std::vector<int64_t>{3}}, {"device", ProgramDevice{"cpu", std::nullopt}}});
  const auto plan = made.compile(zeros, at::kMeta);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_TRUE(plan->run(std::vector<at::Tensor>{at::Tensor()})[0].is_meta());
}

TEST(ProgramPlan, AValueLivesUntilItsLastUse) {
  Made made;
  const ValueRef once = made.call(kAdd, {{"self", Made::x()}, {"other", 1.0}});
  const ValueRef twice = made.call(kAdd, {{"self", once}, {"other", once}});
  const ValueRef last = made.call(kAdd, {{"self", twice}, {"other", 1.0}});
  const auto plan = made.compile(last);
  ASSERT_TRUE(plan.is_ok());
  EXPECT_EQ(plan->instructions()[0].last_used.size(), 1U);  // x
  EXPECT_EQ(plan->instructions()[1].last_used.size(), 1U);
  EXPECT_EQ(plan->instructions()[2].last_used.size(), 1U);  // the output stays
  EXPECT_EQ(plan->run(std::vector<at::Tensor>{at::ones({2})})[0][0].item<float>(), 5);
}

TEST(ProgramPlan, AnAssertionAboutTypesIsLeftOut) {
  Made made;
  made.add("torch.ops.aten._assert_tensor_metadata.default",
           {{"a", Made::x()}, {"dtype", ProgramDtype::kBfloat16, true}});
  const ValueRef sum = made.call(kAdd, {{"self", Made::x()}, {"other", 1.0}});
  EXPECT_EQ(made.run(sum, at::ones({2}))[0].item<float>(), 2);
}

struct BadCall {
  std::string target;
  std::vector<NamedArgument> arguments;
  std::string word;
};

TEST(ProgramPlan, ACallThatDoesNotFitItsOperatorIsRefused) {
  const NamedArgument self{"self", Made::x()};
  const BadCall calls[] = {
      {"torch.ops.aten.no_such_thing.default", {self}, "no such operator"},
      {"torch.ops.aten.add.NoSuch", {self}, "no such operator"},
      {"torch.ops.aten", {self}, "no such operator"},
      {kAdd, {self}, "other is missing"},
      {kAdd, {self, {"other", 1.0}, {"third", 1.0}}, "no argument third"},
      {kAdd, {self, {"other", std::string("one")}}, "other is not of type Tensor"},
      {kAdd, {self, {"other", std::monostate()}}, "other is not of type Tensor"},
      {kAdd, {self, {"other", 1.0}, {"alpha", Made::x()}}, "alpha is not of type"},
      {"torch.ops.aten.softmax.int", {self, {"dim", 0.5}}, "dim is not of type int"},
      {"torch.ops.aten.cat.default", {{"tensors", std::vector<int64_t>{1}}}, "tensors is not"},
      {"torch.ops.aten.view.default", {self, {"size", std::vector<double>{1}}}, "size is not"},
      {"torch.ops.aten.bernoulli.default", {self, {"generator", int64_t{1}}}, "generator is not"},
      {"torch.ops.aten.zeros.default",
       {{"size", std::vector<int64_t>{1}}, {"device", ProgramDevice{"cuda", 0}}},
       "on one device"},
      {"_operator.add", {{"a", int64_t{1}}}, "function of Python"},
      {"_operator.add", {{"a", Made::x()}, {"b", int64_t{1}}}, "number is not of type"},
      {"os.system", {{"a", std::string("true")}}, "function of Python"},
  };
  for (const BadCall& call : calls) {
    Made made;
    const auto plan = made.compile(made.call(call.target, call.arguments));
    EXPECT_THAT(plan, FailsWith(Code::kConfig, Names("model.py, line 9"), Says(call.word)))
        << call.target;
  }
}

TEST(ProgramPlan, MoreResultsThanTheOperatorHasAreRefused) {
  Made made;
  ProgramNode& node = made.add(kAdd, {{"self", Made::x()}, {"other", 1.0}});
  node.outputs = {{NodeOutput::Kind::kNothing, {}}, {NodeOutput::Kind::kNothing, {}}};
  EXPECT_THAT(made.compile(Made::x()), FailsWith(Code::kConfig, Names("aten.add.Tensor")));
}

TEST(ProgramPlan, ASubGraphThatIsGivenOtherValuesIsRefused) {
  const auto region = [](size_t given, size_t results) {
    Made made;
    const auto body = std::make_shared<ProgramGraph>();
    body->values.push_back({"a", ValueKind::kTensor});
    body->inputs.push_back({0});
    body->outputs.push_back(ValueRef{0});
    std::vector<NamedArgument> arguments = {{"", false},
                                            {"", std::shared_ptr<const ProgramGraph>(body)}};
    for (size_t i = 0; i < given; ++i) arguments.push_back({"", Made::x()});
    std::vector<NodeOutput> outputs;
    for (size_t i = 0; i < results; ++i)
      outputs.push_back({NodeOutput::Kind::kValue, {made.value()}});
    ProgramNode& node =
        made.add("torch.ops.higher_order.wrap_with_set_grad_enabled", std::move(arguments));
    node.kind = NodeKind::kSetGradEnabled;
    const ValueRef out = outputs.empty() ? Made::x() : outputs[0].values[0];
    node.outputs = std::move(outputs);
    return made.compile(out);
  };
  EXPECT_TRUE(region(1, 1).is_ok()) << region(1, 1).status().message();
  EXPECT_THAT(region(0, 1), FailsWith(Code::kConfig, Says("sub-graph")));
  EXPECT_THAT(region(2, 1), FailsWith(Code::kConfig, Says("sub-graph")));
  EXPECT_THAT(region(1, 2), FailsWith(Code::kConfig, Says("sub-graph")));
}

TEST(ProgramPlan, WhatAnOperatorThrowsNamesItAndItsLine) {
  Made made;
  const ValueRef product =
      made.call("torch.ops.aten.mm.default", {{"self", Made::x()}, {"mat2", Made::x()}});
  const auto plan = made.compile(product);
  ASSERT_TRUE(plan.is_ok());
  try {
    plan->run(std::vector<at::Tensor>{at::ones({2, 3})});
    FAIL() << "these are no matrices that can be multiplied";
  } catch (const std::exception& error) {
    EXPECT_THAT(std::string(error.what()), Names("aten.mm", "model.py, line 9"));
  }
}

TEST(ProgramPlan, AnotherNumberOfTensorsThanTheProgramTakesThrows) {
  Made made;
  ProgramNode& node =
      made.add("torch.ops.aten.split.Tensor", {{"self", Made::x()}, {"split_size", int64_t{1}}});
  NodeOutput outputs{NodeOutput::Kind::kTensors, {}};
  for (int i = 0; i < 3; ++i) outputs.values.push_back(made.value());
  node.outputs.push_back(outputs);
  const auto plan = made.compile(outputs.values[0]);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_EQ(plan->run(std::vector<at::Tensor>{at::ones({3})})[0].numel(), 1);
  EXPECT_THROW(plan->run(std::vector<at::Tensor>{at::ones({4})}), std::runtime_error);
}

c10::IValue python(const std::string& target, std::vector<c10::IValue> arguments) {
  const PythonFunction* function = find_python_function(target);
  EXPECT_NE(function, nullptr) << target;
  EXPECT_EQ(function->arguments, arguments.size()) << target;
  return function->call(arguments);
}

TEST(PythonNumbers, RoundDownAsPythonDoes) {
  EXPECT_EQ(python("_operator.floordiv", {-7, 2}).toInt(), -4);
  EXPECT_EQ(python("_operator.floordiv", {7, -2}).toInt(), -4);
  EXPECT_EQ(python("_operator.floordiv", {7, 2}).toInt(), 3);
  EXPECT_EQ(python("_operator.floordiv", {-7.0, 2}).toDouble(), -4);
  EXPECT_EQ(python("_operator.mod", {-7, 2}).toInt(), 1);
  EXPECT_EQ(python("_operator.mod", {7, -2}).toInt(), -1);
  EXPECT_EQ(python("_operator.mod", {-7.5, 2}).toDouble(), 0.5);
  EXPECT_EQ(python("_operator.truediv", {6, 4}).toDouble(), 1.5);
  EXPECT_EQ(python("_operator.pow", {3, 4}).toInt(), 81);
  EXPECT_EQ(python("_operator.pow", {2, -1}).toDouble(), 0.5);
  EXPECT_EQ(python("math.floor", {-1.5}).toInt(), -2);
  EXPECT_EQ(python("math.ceil", {-1.5}).toInt(), -1);
  EXPECT_EQ(python("math.trunc", {-1.5}).toInt(), -1);
  EXPECT_EQ(python("round", {2.5}).toInt(), 2);
  EXPECT_EQ(python("_operator.add", {true, 2}).toInt(), 3);
  EXPECT_TRUE(python("_operator.le", {2, 2.0}).toBool());
  EXPECT_FALSE(python("_operator.lt", {2, 2.0}).toBool());
  EXPECT_EQ(python("torch.sym_max", {2, 3}).toInt(), 3);
  EXPECT_EQ(python("torch.sym_ite", {false, 2, 3}).toInt(), 3);
}

TEST(PythonNumbers, ThatNoIntegerHoldsThrow) {
  EXPECT_THROW(python("_operator.add", {kLargest, 1}), std::runtime_error);
  EXPECT_THROW(python("_operator.sub", {kLeast, 1}), std::runtime_error);
  EXPECT_THROW(python("_operator.mul", {kLargest, 2}), std::runtime_error);
  EXPECT_THROW(python("_operator.neg", {kLeast}), std::runtime_error);
  EXPECT_THROW(python("_operator.floordiv", {kLeast, -1}), std::runtime_error);
  EXPECT_EQ(python("_operator.mod", {kLeast, -1}).toInt(), 0);
  EXPECT_THROW(python("_operator.floordiv", {1, 0}), std::runtime_error);
  EXPECT_THROW(python("_operator.mod", {1.0, 0}), std::runtime_error);
  EXPECT_THROW(python("_operator.truediv", {1, 0.0}), std::runtime_error);
  EXPECT_THROW(python("_operator.pow", {10, kLargest}), std::runtime_error);
  EXPECT_THROW(python("math.floor", {1e30}), std::runtime_error);
  EXPECT_THROW(python("math.ceil", {std::numeric_limits<double>::quiet_NaN()}), std::runtime_error);
}

}  // namespace
}  // namespace lockstep::exported
