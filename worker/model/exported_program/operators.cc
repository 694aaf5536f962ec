#include "worker/model/exported_program/operators.h"

#include <algorithm>
#include <array>

namespace lockstep::exported {
namespace {

using namespace std::literals;

constexpr std::string_view kAten = "torch.ops.aten.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

constexpr std::array kPythonFunctions{
    "_operator.add"sv,   "_operator.sub"sv, "_operator.mul"sv,     "_operator.floordiv"sv,
    "_operator.mod"sv,   "_operator.neg"sv, "_operator.truediv"sv, "_operator.pow"sv,
    "_operator.eq"sv,    "_operator.ne"sv,  "_operator.lt"sv,      "_operator.le"sv,
    "_operator.gt"sv,    "_operator.ge"sv,  "_operator.and_"sv,    "_operator.or_"sv,
    "_operator.not_"sv,  "math.ceil"sv,     "math.floor"sv,        "math.trunc"sv,
    "math.sqrt"sv,       "math.pow"sv,      "torch.sym_int"sv,     "torch.sym_float"sv,
    "torch.sym_max"sv,   "torch.sym_min"sv, "torch.sym_not"sv,     "torch.sym_sqrt"sv,
    "torch._sym_sqrt"sv, "round"sv,         "torch.sym_ite"sv,
};

// Each opens files, shares memory that it does not own, or changes a tensor's storage without
// autograd noticing.
constexpr std::array kDenied{
    "from_file"sv,       "record_stream"sv,  "to_mkldnn"sv,      "to_mkldnn_backward"sv,
    "data_ptr"sv,        "resize"sv,         "resize_as"sv,      "set"sv,
    "_resize_output_"sv, "_resize_output"sv, "sparse_resize_"sv, "sparse_resize_and_clear_"sv,
    "_set_data"sv,       "retain_grad"sv,    "requires_grad_"sv, "_backward"sv,
};
constexpr std::array kDeniedStarts{"set_"sv, "resize_"sv, "_unsafe_"sv, "_nested_"sv, "_test_"sv};

// "conv2d" of "torch.ops.aten.conv2d.default".
std::string_view operator_name(std::string_view target) {
  target.remove_prefix(kAten.size());
  return target.substr(0, target.find('.'));
}

bool is_denied(std::string_view name) {
  return std::ranges::find(kDenied, name) != kDenied.end() ||
         std::ranges::any_of(kDeniedStarts, [&](auto start) { return name.starts_with(start); });
}

}  // namespace

std::optional<NodeKind> kind_of_target(std::string_view target) {
  if (target.starts_with(kAten)) {
    const auto name = operator_name(target);
    const bool has_overload = kAten.size() + name.size() + 1 < target.size();
    if (name.empty() || !has_overload || is_denied(name)) return std::nullopt;
    return NodeKind::kOperator;
  }
  if (target.starts_with(kHigherOrder)) {
    target.remove_prefix(kHigherOrder.size());
    if (target == "wrap_with_autocast") return NodeKind::kAutocast;
    if (target == "wrap_with_set_grad_enabled") return NodeKind::kSetGradEnabled;
    return std::nullopt;
  }
  if (std::ranges::find(kPythonFunctions, target) != kPythonFunctions.end())
    return NodeKind::kPython;
  return std::nullopt;
}

std::string why_refused(std::string_view target) {
  if (target.starts_with(kAten))
    return is_denied(operator_name(target))
               ? "may reach memory or files beside the model; write the line with other operators"
               : "names no overload; export the model again with torch 2.11";
  if (target.starts_with(kHigherOrder))
    return "runs parts of the model by a condition or a loop over data; write the line without it";
  if (target.starts_with("torch.ops."))
    return "is not an operator of PyTorch's own library aten, and Lockstep runs no others; write "
           "the line with operators of PyTorch";
  return "is a function of Python that Lockstep does not know; write the line without it";
}

}  // namespace lockstep::exported
