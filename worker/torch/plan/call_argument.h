// An argument of an operator's call, converted from the file's form to the operator's schema: a
// number for a tensor becomes a tensor of no dimensions that does not decide the type of the
// result, an int for a float becomes a float, and so on.
//
// Thread-safety: immutable.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

// A place of the values of a run: an index.
using Slot = uint32_t;
constexpr Slot kNoSlot = UINT32_MAX;

using Values = std::vector<c10::IValue>;

class CallArgument {
 public:
  explicit CallArgument(c10::IValue constant) : constant_(std::move(constant)) {}

  c10::IValue of(const Values& values) const;

  // Null if the argument depends on a run.
  const c10::IValue* constant() const { return kind_ == Kind::kConstant ? &constant_ : nullptr; }
  // The slots that of() reads.
  std::span<const Slot> slots() const { return slots_; }

 private:
  friend class ArgumentConverter;
  enum class Kind : uint8_t {
    kConstant,
    kValue,
    kNumberAsTensor,
    kNumberAsFloat,
    kNumberAsInt,
    kTensors,
    kOptionalTensors,
    kInts,
  };
  CallArgument(Kind kind, std::vector<Slot> slots) : kind_(kind), slots_(std::move(slots)) {}

  Kind kind_ = Kind::kConstant;
  c10::IValue constant_;
  std::vector<Slot> slots_;    // kNoSlot: none, or a whole number of ints_
  std::vector<int64_t> ints_;  // by index of slots_
};

// The kind of a value of the graph, and its slot.
struct PlacedValue {
  Slot slot = kNoSlot;
  ValueKind kind = ValueKind::kTensor;
};

class ArgumentConverter {
 public:
  // `where`: the device of the run, for arguments that name the device of the export, `exported`.
  ArgumentConverter(at::Device where, std::string exported)
      : where_(where), exported_(std::move(exported)) {}

  // `place`: of a value of the node's graph. kConfig, with a message that begins with "its argument
  // NAME".
  Result<CallArgument> convert(const ProgramArgument& value, const c10::Argument& wanted,
                               const std::function<PlacedValue(ValueRef)>& place) const;
  // The argument that the file leaves out.
  static Result<CallArgument> missing(const c10::Argument& wanted);

  Result<at::Device> device(const ProgramDevice& device) const;

 private:
  using Place = std::function<PlacedValue(ValueRef)>;
  // Nothing: it does not fit.
  static std::optional<CallArgument> from_value(PlacedValue placed, const c10::Argument& wanted,
                                                const c10::Type& type);
  static std::optional<CallArgument> from_list(const ProgramArgument& value,
                                               const c10::Argument& wanted,
                                               const c10::Type& element, const Place& place);
  static std::optional<CallArgument> from_ints(const std::vector<IntOrRef>& ints,
                                               const Place& place);

  const at::Device where_;
  const std::string exported_;  // type: "cpu"
};

at::ScalarType torch_type(ProgramDtype dtype);

}  // namespace lockstep::exported
