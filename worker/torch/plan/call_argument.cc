#include "worker/torch/plan/call_argument.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <optional>
#include <utility>

namespace lockstep::exported {
namespace {

using c10::IValue;
using c10::TypeKind;

// As in Python, a number that is combined with a tensor does not decide the type of the result.
IValue wrapped(const at::Scalar& number) {
  at::Tensor t = c10::scalar_to_tensor(number);
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

std::optional<at::Scalar> number_of(const ProgramArgument& value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return at::Scalar(*v);
  if (const auto* v = std::get_if<double>(&value)) return at::Scalar(*v);
  if (const auto* v = std::get_if<bool>(&value)) return at::Scalar(*v);
  return std::nullopt;
}

// Types, layouts and memory formats are whole numbers of LibTorch's.
std::optional<int64_t> whole_number_of(const ProgramArgument& value) {
  if (const auto* v = std::get_if<int64_t>(&value)) return *v;
  if (const auto* v = std::get_if<bool>(&value)) return *v ? 1 : 0;
  if (const auto* v = std::get_if<ProgramDtype>(&value))
    return static_cast<int64_t>(torch_type(*v));
  if (std::holds_alternative<ProgramLayout>(value)) return static_cast<int64_t>(at::kStrided);
  if (const auto* v = std::get_if<ProgramMemoryFormat>(&value)) {
    switch (*v) {
      case ProgramMemoryFormat::kContiguous:
        return static_cast<int64_t>(at::MemoryFormat::Contiguous);
      case ProgramMemoryFormat::kChannelsLast:
        return static_cast<int64_t>(at::MemoryFormat::ChannelsLast);
      case ProgramMemoryFormat::kChannelsLast3d:
        return static_cast<int64_t>(at::MemoryFormat::ChannelsLast3d);
      case ProgramMemoryFormat::kPreserve:
        return static_cast<int64_t>(at::MemoryFormat::Preserve);
    }
  }
  return std::nullopt;
}

// True for a list without elements, whose kind the file does not tell.
bool is_empty_list(const ProgramArgument& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (requires { v.front(); } &&
                      !std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          return v.empty();
        } else {
          return false;
        }
      },
      value);
}

std::optional<IValue> from_constant(const ProgramArgument& value, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      if (const auto number = number_of(value)) return wrapped(*number);
      break;
    case TypeKind::NumberType:
      if (const auto number = number_of(value)) return IValue(*number);
      break;
    case TypeKind::IntType:
      if (const auto number = whole_number_of(value)) return IValue(*number);
      break;
    case TypeKind::FloatType:
      if (const auto* v = std::get_if<double>(&value)) return IValue(*v);
      if (const auto* v = std::get_if<int64_t>(&value)) return IValue(static_cast<double>(*v));
      break;
    case TypeKind::BoolType:
      if (const auto* v = std::get_if<bool>(&value)) return IValue(*v);
      break;
    case TypeKind::StringType:
      if (const auto* v = std::get_if<std::string>(&value)) return IValue(*v);
      break;
    default:
      break;
  }
  return std::nullopt;
}

template <typename T, typename From>
IValue list_of(const From& from) {
  c10::List<T> out;
  for (const auto& v : from) out.push_back(static_cast<T>(v));
  return out;
}

}  // namespace

at::ScalarType torch_type(ProgramDtype dtype) {
  switch (dtype) {
    case ProgramDtype::kByte:
      return at::kByte;
    case ProgramDtype::kChar:
      return at::kChar;
    case ProgramDtype::kShort:
      return at::kShort;
    case ProgramDtype::kInt:
      return at::kInt;
    case ProgramDtype::kLong:
      return at::kLong;
    case ProgramDtype::kHalf:
      return at::kHalf;
    case ProgramDtype::kFloat:
      return at::kFloat;
    case ProgramDtype::kDouble:
      return at::kDouble;
    case ProgramDtype::kComplexHalf:
      return at::kComplexHalf;
    case ProgramDtype::kComplexFloat:
      return at::kComplexFloat;
    case ProgramDtype::kComplexDouble:
      return at::kComplexDouble;
    case ProgramDtype::kBool:
      return at::kBool;
    case ProgramDtype::kBfloat16:
      return at::kBFloat16;
  }
  return at::kFloat;
}

IValue CallArgument::of(const Values& values) const {
  switch (kind_) {
    case Kind::kConstant:
      return constant_;
    case Kind::kValue:
      return values[slots_[0]];
    case Kind::kNumberAsTensor:
      return wrapped(values[slots_[0]].toScalar());
    case Kind::kNumberAsFloat:
      return values[slots_[0]].toScalar().toDouble();
    case Kind::kNumberAsInt:
      return values[slots_[0]].toScalar().toLong();
    case Kind::kTensors: {
      c10::List<at::Tensor> out;
      out.reserve(slots_.size());
      for (const Slot slot : slots_) out.push_back(values[slot].toTensor());
      return out;
    }
    case Kind::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> out;
      out.reserve(slots_.size());
      for (const Slot slot : slots_)
        out.push_back(slot == kNoSlot ? std::nullopt : std::optional(values[slot].toTensor()));
      return out;
    }
    case Kind::kInts: {
      c10::List<int64_t> out;
      out.reserve(slots_.size());
      for (size_t i = 0; i < slots_.size(); ++i)
        out.push_back(slots_[i] == kNoSlot ? ints_[i] : values[slots_[i]].toInt());
      return out;
    }
  }
  return {};
}

Result<CallArgument> ArgumentConverter::missing(const c10::Argument& wanted) {
  if (wanted.default_value()) return CallArgument(*wanted.default_value());
  if (wanted.type()->kind() == TypeKind::OptionalType) return CallArgument(IValue());
  return Status(Code::kConfig, "its argument " + wanted.name() + " is missing");
}

Result<at::Device> ArgumentConverter::device(const ProgramDevice& device) const {
  if (device.type == exported_) return where_;
  return Status(Code::kConfig, "it computes on " + device.type +
                                   ", but the program's input is on " + exported_ +
                                   "; export the model with all of it on one device");
}

Result<CallArgument> ArgumentConverter::convert(
    const ProgramArgument& value, const c10::Argument& wanted,
    const std::function<PlacedValue(ValueRef)>& place) const {
  c10::TypePtr type = wanted.type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    if (std::holds_alternative<std::monostate>(value)) return CallArgument(IValue());
    type = optional->getElementType();
  }
  std::optional<CallArgument> out;
  if (const auto* ref = std::get_if<ValueRef>(&value)) {
    out = from_value(place(*ref), wanted, *type);
  } else if (type->kind() == TypeKind::ListType) {
    out = from_list(value, wanted, *type->containedType(0), place);
  } else if (const auto* named = std::get_if<ProgramDevice>(&value)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const at::Device device, this->device(*named));
    if (type->kind() == TypeKind::DeviceObjType) out = CallArgument(IValue(device));
  } else if (auto constant = from_constant(value, *type)) {
    out = CallArgument(*std::move(constant));
  }
  if (out) return *std::move(out);
  return Status(Code::kConfig,
                "its argument " + wanted.name() + " is not of type " + wanted.type()->str());
}

std::optional<CallArgument> ArgumentConverter::from_value(PlacedValue placed,
                                                          const c10::Argument& wanted,
                                                          const c10::Type& type) {
  using Kind = CallArgument::Kind;
  const ValueKind is = placed.kind;
  const auto take = [&](Kind kind) { return CallArgument(kind, {placed.slot}); };
  switch (type.kind()) {
    case TypeKind::TensorType:
      return take(is == ValueKind::kTensor ? Kind::kValue : Kind::kNumberAsTensor);
    case TypeKind::NumberType:
      if (is != ValueKind::kTensor) return take(Kind::kValue);
      break;
    case TypeKind::IntType:
      if (is == ValueKind::kInt) return take(Kind::kValue);
      if (is == ValueKind::kBool) return take(Kind::kNumberAsInt);
      break;
    case TypeKind::FloatType:
      if (is == ValueKind::kFloat) return take(Kind::kValue);
      if (is == ValueKind::kInt) return take(Kind::kNumberAsFloat);
      break;
    case TypeKind::BoolType:
      if (is == ValueKind::kBool) return take(Kind::kValue);
      break;
    case TypeKind::ListType:
      if (is == ValueKind::kInt && wanted.N() && type.containedType(0)->kind() == TypeKind::IntType)
        return CallArgument(Kind::kInts,
                            std::vector<Slot>(static_cast<size_t>(*wanted.N()), placed.slot));
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::optional<CallArgument> ArgumentConverter::from_list(
    const ProgramArgument& value, const c10::Argument& wanted, const c10::Type& element,
    const std::function<PlacedValue(ValueRef)>& place) {
  using Kind = CallArgument::Kind;
  const bool are_optional = element.kind() == TypeKind::OptionalType;
  const TypeKind kind = are_optional ? element.containedType(0)->kind() : element.kind();
  if (kind == TypeKind::TensorType) {
    std::vector<std::optional<ValueRef>> refs;
    if (const auto* all = std::get_if<std::vector<ValueRef>>(&value)) {
      refs.assign(all->begin(), all->end());
    } else if (const auto* some = std::get_if<std::vector<std::optional<ValueRef>>>(&value)) {
      refs = *some;
    } else if (!is_empty_list(value)) {
      return std::nullopt;
    }
    std::vector<Slot> slots;
    for (const auto& ref : refs) {
      const PlacedValue placed = ref ? place(*ref) : PlacedValue{};
      if (placed.kind != ValueKind::kTensor || (!ref && !are_optional)) return std::nullopt;
      slots.push_back(placed.slot);
    }
    return CallArgument(are_optional ? Kind::kOptionalTensors : Kind::kTensors, std::move(slots));
  }
  if (are_optional) return std::nullopt;
  if (kind == TypeKind::IntType) {
    if (const auto* v = std::get_if<std::vector<int64_t>>(&value))
      return CallArgument(list_of<int64_t>(*v));
    // One number for a list of a fixed size (kernel_size=3) stands for all of its elements.
    const auto* one = std::get_if<int64_t>(&value);
    if (one != nullptr && wanted.N())
      return CallArgument(
          list_of<int64_t>(std::vector<int64_t>(static_cast<size_t>(*wanted.N()), *one)));
    if (const auto* v = std::get_if<std::vector<IntOrRef>>(&value)) return from_ints(*v, place);
  }
  if (kind == TypeKind::FloatType) {
    if (const auto* v = std::get_if<std::vector<double>>(&value))
      return CallArgument(list_of<double>(*v));
    if (const auto* v = std::get_if<std::vector<int64_t>>(&value))
      return CallArgument(list_of<double>(*v));
  }
  if (kind == TypeKind::BoolType) {
    if (const auto* v = std::get_if<std::vector<bool>>(&value))
      return CallArgument(list_of<bool>(*v));
  }
  if (!is_empty_list(value)) return std::nullopt;
  if (kind == TypeKind::IntType) return CallArgument(IValue(c10::List<int64_t>()));
  if (kind == TypeKind::FloatType) return CallArgument(IValue(c10::List<double>()));
  if (kind == TypeKind::BoolType) return CallArgument(IValue(c10::List<bool>()));
  return std::nullopt;
}

std::optional<CallArgument> ArgumentConverter::from_ints(
    const std::vector<IntOrRef>& ints, const std::function<PlacedValue(ValueRef)>& place) {
  CallArgument out(CallArgument::Kind::kInts, {});
  for (const IntOrRef& v : ints) {
    const auto* constant = std::get_if<int64_t>(&v);
    const PlacedValue placed = constant == nullptr ? place(std::get<ValueRef>(v)) : PlacedValue{};
    if (constant == nullptr && placed.kind != ValueKind::kInt) return std::nullopt;
    out.slots_.push_back(placed.slot);
    out.ints_.push_back(constant == nullptr ? 0 : *constant);
  }
  return out;
}

}  // namespace lockstep::exported
