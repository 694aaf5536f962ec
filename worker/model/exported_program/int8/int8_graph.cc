#include "worker/model/exported_program/int8/int8_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "worker/model/int8/int8_values.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

// A sum of products of two numbers up to 127 must fit 32 bits.
constexpr int64_t kMostInputs = INT32_MAX / (int64_t{kInt8Most} * kInt8Most);
// Below it a row counts as zeros: its scale is not divided by 0.
constexpr double kLeastScale = 1e-30;

const json* find_input(const json& node, const char* name) {
  for (const json& input : node["inputs"])
    if (input.value("name", "") == name) return &input["arg"];
  return nullptr;
}

// The name in {"as_tensor": {"name": "x"}}; empty for anything else.
std::string tensor_name(const json& argument) {
  const auto tensor = argument.find("as_tensor");
  return tensor == argument.end() ? "" : tensor->value("name", "");
}

// Renames tensors in an argument, but not inside of a sub-graph, which has names of its own.
void rename_tensors(json& value, const std::map<std::string, std::string>& names) {
  if (value.is_object() && value.contains("as_graph")) return;
  if (value.is_object())
    if (const auto name = value.find("name"); name != value.end() && name->is_string())
      if (const auto found = names.find(name->get<std::string>()); found != names.end())
        *name = found->second;
  if (value.is_structured())
    for (json& inner : value) rename_tensors(inner, names);
}

std::string with_underscores(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

json one_dim(int64_t dim) {
  return {{"as_ints", json::array({dim})}};
}

json scalar_type(ProgramDtype dtype) {
  return {{"as_scalar_type", static_cast<int64_t>(dtype)}};
}

json device_of_tensors(const Program& program) {
  for (const UserInput& input : program.user_inputs) {
    const json index = input.device.index ? json(*input.device.index) : json();
    return {{"type", input.device.type}, {"index", index}};
  }
  return {{"type", "cpu"}, {"index", nullptr}};
}

}  // namespace

Int8Graph::Int8Graph(const Program& program, json& graph, Int8Form form)
    : program_(program), form_(form), list_(graph, device_of_tensors(program)) {}

Int8Inputs Int8Graph::add(const Int8Weight& weight) {
  Held held;
  held.weight = &weight;
  held.tensor = &program_.tensors[weight.tensor];
  for (const ProgramInput& input : program_.inputs) {
    if (input.kind != InputKind::kParameter || input.tensor != weight.tensor || !input.value)
      continue;
    const std::string& name = program_.graph.values[input.value->value].name;
    if (held.floats.empty())
      held.floats = name;
    else
      renamed_[name] = held.floats;
  }
  const std::string base = "b_" + with_underscores(held.tensor->name());
  held.inputs = {list_.new_name(base + "_int8"), list_.new_name(base + "_scale")};
  held_.push_back(held);
  return held.inputs;
}

Int8Counts Int8Graph::write() {
  std::map<size_t, std::vector<std::pair<Held*, UseKind>>> uses;
  for (Held& held : held_)
    for (const WeightUse& use : held.weight->uses) uses[use.node].emplace_back(&held, use.kind);
  counts_.tensors = static_cast<uint32_t>(held_.size());
  for (size_t i = 0; i < list_.old_nodes().size(); ++i) {
    json node = list_.old_nodes()[i];
    for (json& input : node["inputs"]) rename_tensors(input["arg"], renamed_);
    list_.stand_for(node);
    bool is_written = false;
    // First the floats of the weights that the node takes besides the one it multiplies by.
    for (const auto& [held, kind] : uses[i])
      if (kind == UseKind::kValue) write_floats(*held);
    for (const auto& [held, kind] : uses[i]) {
      if (kind == UseKind::kValue) continue;
      is_written =
          kind == UseKind::kGather ? write_gather(node, *held) : write_linear(node, *held, kind);
      if (!is_written) write_floats(*held);
    }
    if (!is_written) list_.keep(std::move(node));
  }
  list_.finish();
  for (const Held& held : held_) counts_.floats += held.has_floats ? 1 : 0;
  return counts_;
}

std::optional<Int8Graph::LinearCall> Int8Graph::linear_call(const json& node) const {
  const bool is_linear = node["target"] == "torch.ops.aten.linear.default";
  const bool is_addmm = node["target"] == "torch.ops.aten.addmm.default";
  const json* x = find_input(node, is_linear ? "input" : is_addmm ? "mat1" : "self");
  const json* bias =
      is_linear || is_addmm ? find_input(node, is_linear ? "bias" : "self") : nullptr;
  if (x == nullptr || tensor_name(*x).empty() || node["outputs"].size() != 1) return std::nullopt;
  LinearCall call{.x = *x,
                  .bias = {},
                  .result = tensor_name(node["outputs"][0]),
                  .x_sizes = {},
                  .result_sizes = {}};
  if (bias != nullptr && bias->contains("as_optional_tensor"))
    bias = &(*bias)["as_optional_tensor"];
  if (bias != nullptr && !bias->contains("as_none")) {
    if (tensor_name(*bias).empty()) return std::nullopt;
    call.bias = *bias;
  }
  const auto x_sizes = list_.sizes_of(tensor_name(*x));
  const auto result_sizes = list_.sizes_of(call.result);
  if (call.result.empty() || !x_sizes || !result_sizes || x_sizes->empty() ||
      x_sizes->size() != result_sizes->size())
    return std::nullopt;
  call.x_sizes = *x_sizes;
  call.result_sizes = *result_sizes;
  return call;
}

bool Int8Graph::write_linear(const json& node, const Held& held, UseKind kind) {
  const auto call = linear_call(node);
  if (!call) return false;
  const int64_t inputs = held.tensor->shape[kind == UseKind::kLinear ? 1 : 0];
  if (form_ == Int8Form::kDynamic && inputs <= kMostInputs)
    write_dynamic(*call, held, kind);
  else
    write_scaled(*call, held, kind);
  ++counts_.products;
  return true;
}

std::string Int8Graph::multiply(const std::string& a, const std::string& b, const JsonSizes& sizes,
                                const std::string& name) {
  return list_.call("mul.Tensor",
                    {json_argument("self", json_tensor(a)), json_argument("other", json_tensor(b))},
                    ProgramDtype::kFloat, sizes, name);
}

std::string Int8Graph::numbers_as_floats(const Held& held) {
  return list_.call("to.dtype",
                    {json_argument("self", json_tensor(held.inputs.numbers)),
                     json_argument("dtype", scalar_type(ProgramDtype::kFloat))},
                    ProgramDtype::kFloat, sizes_of_shape(held.tensor->shape));
}

// linear(x, numbers) * scales + bias.
void Int8Graph::write_scaled(const LinearCall& call, const Held& held, UseKind kind) {
  const std::string floats = numbers_as_floats(held);
  const bool is_linear = kind == UseKind::kLinear;
  const std::string product =
      list_.call(is_linear ? "linear.default" : "matmul.default",
                 {json_argument(is_linear ? "input" : "self", call.x),
                  json_argument(is_linear ? "weight" : "other", json_tensor(floats))},
                 ProgramDtype::kFloat, call.result_sizes);
  const bool has_bias = !call.bias.is_null();
  const std::string scaled =
      multiply(product, held.inputs.scales, call.result_sizes, has_bias ? "" : call.result);
  if (has_bias)
    list_.call("add.Tensor",
               {json_argument("self", json_tensor(scaled)), json_argument("other", call.bias)},
               ProgramDtype::kFloat, call.result_sizes, call.result);
}

// Rows as (rows, inputs) in float32: autocast may have made them bfloat16, whose 8 bits of fraction
// are too few for the scales.
std::string Int8Graph::flat_rows(const LinearCall& call, int64_t inputs, const JsonSizes& flat) {
  std::string rows = tensor_name(call.x);
  if (call.x_sizes.size() != 2) {
    const std::vector<int64_t> shape = {-1, inputs};
    rows = list_.call(
        "reshape.default",
        {json_argument("self", json_tensor(rows)), json_argument("shape", {{"as_ints", shape}})},
        ProgramDtype::kFloat, flat);
  }
  return list_.call("to.dtype",
                    {json_argument("self", json_tensor(rows)),
                     json_argument("dtype", scalar_type(ProgramDtype::kFloat))},
                    ProgramDtype::kFloat, flat);
}

// The result's sizes for reshape. A size that is not fixed is -1; if several are not, they are
// asked of x.
json Int8Graph::shape_argument(const LinearCall& call) {
  const auto open =
      std::ranges::count_if(call.result_sizes, [](const json& size) { return !is_fixed(size); });
  if (open <= 1) {
    json sizes = json::array();
    for (const json& size : call.result_sizes)
      sizes.push_back(is_fixed(size) ? size["as_int"].get<int64_t>() : -1);
    return {{"as_ints", sizes}};
  }
  json sizes = json::array();
  for (size_t d = 0; d < call.result_sizes.size(); ++d) {
    const json& size = call.result_sizes[d];
    if (is_fixed(size))
      sizes.push_back(size);
    else
      sizes.push_back(
          {{"as_name", list_.size_of(tensor_name(call.x), static_cast<int64_t>(d), size)}});
  }
  return {{"as_sym_ints", sizes}};
}

// Rows and weights as whole numbers, and their product, scaled by both.
void Int8Graph::write_dynamic(const LinearCall& call, const Held& held, UseKind kind) {
  const json rows = size_product(std::span(call.x_sizes).first(call.x_sizes.size() - 1));
  const bool is_linear = kind == UseKind::kLinear;
  const int64_t inputs = held.tensor->shape[is_linear ? 1 : 0];
  const int64_t outputs = held.tensor->shape[is_linear ? 0 : 1];
  const auto with_rows = [&](int64_t columns) {
    JsonSizes sizes = sizes_of_shape(std::vector<int64_t>{0, columns});
    sizes[0] = rows;
    return sizes;
  };
  const JsonSizes flat = with_rows(inputs);
  const JsonSizes column = with_rows(1);
  const JsonSizes result = with_rows(outputs);
  const auto one = [&](const char* target, const std::string& of, const JsonSizes& sizes,
                       std::vector<json> more, ProgramDtype dtype = ProgramDtype::kFloat) {
    more.insert(more.begin(), json_argument("self", json_tensor(of)));
    return list_.call(target, std::move(more), dtype, sizes);
  };
  const std::string x = flat_rows(call, inputs, flat);
  const std::string largest =
      one("amax.default", one("abs.default", x, flat, {}), column,
          {json_argument("dim", one_dim(1)), json_argument("keepdim", {{"as_bool", true}})});
  const std::string scale =
      one("clamp.default",
          one("div.Tensor", largest, column, {json_argument("other", {{"as_int", kInt8Most}})}),
          column, {json_argument("min", {{"as_float", kLeastScale}})});
  const std::string numbers =
      one("to.dtype",
          one("round.default",
              one("div.Tensor", x, flat, {json_argument("other", json_tensor(scale))}), flat, {}),
          flat, {json_argument("dtype", scalar_type(ProgramDtype::kChar))}, ProgramDtype::kChar);
  std::string weights = held.inputs.numbers;
  if (is_linear)
    weights = one("t.default", weights, sizes_of_shape(std::vector<int64_t>{inputs, outputs}), {},
                  ProgramDtype::kChar);
  const std::string product =
      one("_int_mm.default", numbers, result, {json_argument("mat2", json_tensor(weights))},
          ProgramDtype::kInt);
  const std::string floats =
      one("to.dtype", product, result, {json_argument("dtype", scalar_type(ProgramDtype::kFloat))});
  const bool is_flat = call.x_sizes.size() == 2;
  const bool has_bias = !call.bias.is_null();
  const std::string by_rows = multiply(floats, scale, result);
  std::string out =
      multiply(by_rows, held.inputs.scales, result, is_flat && !has_bias ? call.result : "");
  if (has_bias)
    out = list_.call("add.Tensor",
                     {json_argument("self", json_tensor(out)), json_argument("other", call.bias)},
                     ProgramDtype::kFloat, result, is_flat ? call.result : "");
  if (!is_flat)
    list_.call(
        "reshape.default",
        {json_argument("self", json_tensor(out)), json_argument("shape", shape_argument(call))},
        ProgramDtype::kFloat, call.result_sizes, call.result);
}

bool Int8Graph::write_gather(const json& node, const Held& held) {
  const json* indices = find_input(node, "indices");
  if (indices == nullptr || node["outputs"].size() != 1) return false;
  const std::string result = tensor_name(node["outputs"][0]);
  const auto sizes = list_.sizes_of(result);
  if (tensor_name(*indices).empty() || !sizes || sizes->empty()) return false;
  const auto gather = [&](const std::string& rows, const JsonSizes& of, ProgramDtype dtype) {
    return list_.call(
        "embedding.default",
        {json_argument("weight", json_tensor(rows)), json_argument("indices", *indices)}, dtype,
        of);
  };
  JsonSizes column = *sizes;
  column.back() = {{"as_int", 1}};
  const std::string numbers = gather(held.inputs.numbers, *sizes, ProgramDtype::kChar);
  const std::string floats = list_.call("to.dtype",
                                        {json_argument("self", json_tensor(numbers)),
                                         json_argument("dtype", scalar_type(ProgramDtype::kFloat))},
                                        ProgramDtype::kFloat, *sizes);
  const std::vector<int64_t> shape = {held.tensor->shape[0], 1};
  const std::string scales = list_.call("reshape.default",
                                        {json_argument("self", json_tensor(held.inputs.scales)),
                                         json_argument("shape", {{"as_ints", shape}})},
                                        ProgramDtype::kFloat, sizes_of_shape(shape));
  multiply(floats, gather(scales, column, ProgramDtype::kFloat), *sizes, result);
  ++counts_.gathers;
  return true;
}

// The weight's floats under the name that it had, before the first node that takes them.
void Int8Graph::write_floats(Held& held) {
  if (std::exchange(held.has_floats, true)) return;
  const std::vector<int64_t>& whole = held.tensor->shape;
  std::string scales = held.inputs.scales;
  if (held.weight->channel_dim == 0) {
    std::vector<int64_t> shape(whole.size(), 1);
    shape[0] = whole[0];
    scales = list_.call(
        "reshape.default",
        {json_argument("self", json_tensor(scales)), json_argument("shape", {{"as_ints", shape}})},
        ProgramDtype::kFloat, sizes_of_shape(shape));
  }
  multiply(numbers_as_floats(held), scales, sizes_of_shape(whole), held.floats);
}

}  // namespace lockstep::exported
