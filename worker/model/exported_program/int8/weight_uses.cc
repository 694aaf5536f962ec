#include "worker/model/exported_program/int8/weight_uses.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "worker/model/int8/int8_values.h"

namespace lockstep::exported {
namespace {

// Where an operator takes a weight, by the argument's name.
struct WeightPlace {
  std::string_view target;
  std::string_view argument;
  UseKind kind;
};
constexpr WeightPlace kPlaces[] = {
    {"torch.ops.aten.linear.default", "weight", UseKind::kLinear},
    {"torch.ops.aten.addmm.default", "mat2", UseKind::kMatrix},
    {"torch.ops.aten.mm.default", "mat2", UseKind::kMatrix},
    {"torch.ops.aten.matmul.default", "other", UseKind::kMatrix},
    {"torch.ops.aten.embedding.default", "weight", UseKind::kGather},
};

size_t times_in(const ProgramArgument& argument, ValueRef value) {
  if (const auto* one = std::get_if<ValueRef>(&argument)) return *one == value ? 1 : 0;
  if (const auto* list = std::get_if<std::vector<ValueRef>>(&argument))
    return static_cast<size_t>(std::ranges::count(*list, value));
  if (const auto* list = std::get_if<std::vector<std::optional<ValueRef>>>(&argument))
    return static_cast<size_t>(std::ranges::count(*list, std::optional(value)));
  return 0;
}

// addmm scales its terms by beta and alpha, which are 1 unless given.
bool has_factors(const ProgramNode& node) {
  return std::ranges::any_of(node.arguments, [](const NamedArgument& argument) {
    return argument.name == "beta" || argument.name == "alpha";
  });
}

UseKind kind_of(const ProgramNode& node, std::string_view argument, size_t dims) {
  for (const WeightPlace& place : kPlaces) {
    if (node.target != place.target || argument != place.argument) continue;
    return dims == 2 && !has_factors(node) ? place.kind : UseKind::kValue;
  }
  return UseKind::kValue;
}

// "add_" of "torch.ops.aten.add_.Tensor".
bool writes(const ProgramNode& node) {
  const size_t dot = node.target.rfind('.');
  return dot != std::string::npos && dot > 0 && node.target[dot - 1] == '_';
}

class UseFinder {
 public:
  UseFinder(const Program& program, uint32_t tensor) : program_(program) {
    for (const ProgramInput& input : program.inputs)
      if (input.kind == InputKind::kParameter && input.tensor == tensor && input.value)
        values_.push_back(*input.value);
  }

  // Empty: the tensor must stay as it is.
  std::optional<std::vector<WeightUse>> find(size_t dims) const {
    if (values_.empty()) return std::nullopt;
    for (const auto& output : program_.graph.outputs)
      if (output && std::ranges::find(values_, *output) != values_.end()) return std::nullopt;
    std::vector<WeightUse> uses;
    for (size_t i = 0; i < program_.graph.nodes.size(); ++i) {
      const ProgramNode& node = program_.graph.nodes[i];
      const auto kind = use_in(node, dims);
      if (!kind) continue;
      if (writes(node)) return std::nullopt;
      uses.push_back({i, *kind});
    }
    return uses;
  }

 private:
  std::optional<UseKind> use_in(const ProgramNode& node, size_t dims) const {
    std::optional<UseKind> kind;
    size_t times = 0;
    for (const NamedArgument& argument : node.arguments) {
      size_t here = 0;
      for (const ValueRef value : values_) here += times_in(argument.value, value);
      if (here > 0) kind = kind_of(node, argument.name, dims);
      times += here;
    }
    return times > 1 ? UseKind::kValue : kind;
  }

  const Program& program_;
  std::vector<ValueRef> values_;  // the tensor's inputs: tied ones have several
};

}  // namespace

std::vector<Int8Weight> find_int8_weights(const Program& program) {
  std::vector<Int8Weight> found;
  for (uint32_t i = 0; i < program.tensors.size(); ++i) {
    const ProgramTensor& tensor = program.tensors[i];
    if (!tensor.is_parameter || tensor.dtype != ProgramDtype::kFloat) continue;
    auto uses = UseFinder(program, i).find(tensor.shape.size());
    if (!uses) continue;
    const bool is_in_out = !uses->empty() && std::ranges::all_of(*uses, [](const WeightUse& use) {
      return use.kind == UseKind::kMatrix;
    });
    const size_t dim = is_in_out ? 1 : 0;
    if (!is_worth_int8(tensor.shape, dim)) continue;
    // With scales along (out, in), a product with (in, out) takes the floats.
    for (WeightUse& use : *uses)
      if (use.kind == UseKind::kMatrix && !is_in_out) use.kind = UseKind::kValue;
    found.push_back({i, dim, *std::move(uses)});
  }
  return found;
}

}  // namespace lockstep::exported
