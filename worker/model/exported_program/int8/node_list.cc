#include "worker/model/exported_program/int8/node_list.h"

#include <algorithm>
#include <utility>

namespace lockstep::exported {
namespace {

using nlohmann::json;

// As sympy writes it (srepr), which PyTorch reads.
std::string expression_of(const json& size) {
  if (is_fixed(size)) return "Integer(" + std::to_string(size["as_int"].get<int64_t>()) + ")";
  return size["as_expr"]["expr_str"].get<std::string>();
}

// The size that the export's example had; null if the file does not tell.
json hint_of(const json& size) {
  return is_fixed(size) ? size : size["as_expr"].value("hint", json());
}

bool is_hint(const json& hint) {
  return hint.is_object() && hint.contains("as_int") && hint["as_int"].is_number_integer();
}

// Sizes of a damaged file may be anything; do not trust their product.
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

bool is_size(const json& size) {
  if (!size.is_object() || size.size() != 1) return false;
  if (is_fixed(size)) return size["as_int"].get<int64_t>() >= 0;
  const auto found = size.find("as_expr");
  return found != size.end() && found->is_object() && found->contains("expr_str") &&
         (*found)["expr_str"].is_string();
}

}  // namespace

bool is_fixed(const json& size) {
  const auto found = size.find("as_int");
  return found != size.end() && found->is_number_integer();
}

JsonSizes sizes_of_shape(std::span<const int64_t> shape) {
  JsonSizes sizes;
  for (const int64_t n : shape) sizes.push_back({{"as_int", n}});
  return sizes;
}

json size_product(std::span<const json> sizes) {
  int64_t fixed = 1;
  std::vector<const json*> open;
  json hint = {{"as_int", 1}};
  for (const json& size : sizes) {
    if (is_fixed(size))
      fixed = times(fixed, size["as_int"].get<int64_t>());
    else
      open.push_back(&size);
    const json factor = hint_of(size);
    if (is_hint(hint) && is_hint(factor))
      hint["as_int"] = times(hint["as_int"].get<int64_t>(), factor["as_int"].get<int64_t>());
    else
      hint = json();
  }
  if (open.empty() || fixed == 0) return {{"as_int", fixed}};
  std::string factors = fixed == 1 ? "" : "Integer(" + std::to_string(fixed) + ")";
  for (const json* size : open) factors += (factors.empty() ? "" : ", ") + expression_of(*size);
  const bool is_one = fixed == 1 && open.size() == 1;
  return {{"as_expr", {{"expr_str", is_one ? factors : "Mul(" + factors + ")"}, {"hint", hint}}}};
}

json meta_of_tensor(ProgramDtype dtype, const JsonSizes& sizes, const json& device) {
  json strides = json::array();
  for (size_t d = 0; d < sizes.size(); ++d)
    strides.push_back(size_product(std::span(sizes).subspan(d + 1)));
  return {{"dtype", static_cast<int64_t>(dtype)},
          {"sizes", sizes},
          {"requires_grad", false},
          {"device", device},
          {"strides", strides},
          {"storage_offset", {{"as_int", 0}}},
          {"layout", static_cast<int64_t>(ProgramLayout::kStrided)}};
}

json json_argument(const char* name, json value) {
  return {{"name", name}, {"arg", std::move(value)}, {"kind", 1}};
}

json json_tensor(const std::string& value) {
  return {{"as_tensor", {{"name", value}}}};
}

NodeList::NodeList(json& graph, json device) : graph_(graph), device_(std::move(device)) {
  old_ = std::exchange(graph_["nodes"], json::array()).get<std::vector<json>>();
  for (const char* list :
       {"tensor_values", "sym_int_values", "sym_float_values", "sym_bool_values"}) {
    json& values = graph_[list];
    if (!values.is_object()) values = json::object();
    for (const auto& [name, value] : values.items()) names_.insert(name);
  }
  for (const json& node : old_)
    if (const auto name = node.find("name"); name != node.end() && name->is_string())
      names_.insert(name->get<std::string>());
}

std::string NodeList::new_name(const std::string& like) {
  std::string name = like;
  for (uint64_t i = 1; !names_.insert(name).second; ++i) name = like + "_" + std::to_string(i);
  return name;
}

std::optional<JsonSizes> NodeList::sizes_of(const std::string& tensor) const {
  const auto meta = graph_["tensor_values"].find(tensor);
  if (meta == graph_["tensor_values"].end() || !meta->is_object()) return std::nullopt;
  const auto sizes = meta->find("sizes");
  if (sizes == meta->end() || !sizes->is_array() || !std::ranges::all_of(*sizes, is_size))
    return std::nullopt;
  return sizes->get<JsonSizes>();
}

// The call whose result the old node gave has its lines of Python; the others have its modules
// only, since the lines are long.
json NodeList::node(const std::string& target, std::vector<json> inputs, json output,
                    const std::string& name, bool is_last) const {
  json metadata = origin_ == nullptr ? json::object() : origin_->value("metadata", json::object());
  if (!is_last) metadata.erase("stack_trace");
  return {{"target", "torch.ops.aten." + target},        {"inputs", std::move(inputs)},
          {"outputs", json::array({std::move(output)})}, {"metadata", std::move(metadata)},
          {"is_hop_single_tensor_return", nullptr},      {"name", name}};
}

std::string NodeList::call(const std::string& target, std::vector<json> inputs, ProgramDtype dtype,
                           const JsonSizes& sizes, const std::string& name) {
  const std::string result =
      name.empty() ? new_name("int8_" + target.substr(0, target.find('.'))) : name;
  graph_["tensor_values"][result] = meta_of_tensor(dtype, sizes, device_);
  new_.push_back(node(target, std::move(inputs), json_tensor(result), result, !name.empty()));
  return result;
}

std::string NodeList::size_of(const std::string& tensor, int64_t dim, const json& size) {
  const std::string result = new_name("int8_size");
  graph_["sym_int_values"][result] = size;
  new_.push_back(
      node("sym_size.int",
           {json_argument("self", json_tensor(tensor)), json_argument("dim", {{"as_int", dim}})},
           {{"as_sym_int", {{"as_name", result}}}}, result, false));
  return result;
}

}  // namespace lockstep::exported
