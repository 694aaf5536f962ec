// The arguments and results of a node of an exported program: constants, and values of its graph by
// number.
//
// The enums have the numbers of PyTorch's export schema 8 (torch/_export/serde/schema.py).
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::exported {

struct ProgramGraph;

enum class ProgramDtype : uint8_t {
  kByte = 1,
  kChar = 2,
  kShort = 3,
  kInt = 4,
  kLong = 5,
  kHalf = 6,
  kFloat = 7,
  kDouble = 8,
  kComplexHalf = 9,
  kComplexFloat = 10,
  kComplexDouble = 11,
  kBool = 12,
  kBfloat16 = 13,
};

enum class ProgramLayout : uint8_t { kStrided = 7 };  // the parser refuses all others

enum class ProgramMemoryFormat : uint8_t {
  kContiguous = 1,
  kChannelsLast = 2,
  kChannelsLast3d = 3,
  kPreserve = 4,
};

struct ProgramDevice {
  std::string type;  // of the export: "cpu", "cuda"
  std::optional<int64_t> index;
};

// A value of the graph that the node is in: an index below ProgramGraph::values. A node that
// computes it stands before each node that takes it.
struct ValueRef {
  uint32_t value = 0;
  bool operator==(const ValueRef&) const = default;
};

using IntOrRef = std::variant<int64_t, ValueRef>;

// The alternatives, by the kind in the file:
//   monostate                 as_none, and as_optional_tensor without a tensor
//   ValueRef                  as_tensor, as_optional_tensor; as_sym_int, _float, _bool by name
//   vector<ValueRef>          as_tensors
//   vector<optional<...>>     as_optional_tensors
//   int64_t, double, bool     as_int, as_float ("Infinity" and "NaN" too), as_bool; as_sym_*
//   without
//                             a name
//   vector<int64_t> ...       as_ints, as_floats, as_bools; an empty list may be any of these
//   vector<IntOrRef>          as_sym_ints
//   shared_ptr                as_graph; never null
// ProgramGraph::values tells which ValueRef is a tensor and which a number.
using ProgramArgument =
    std::variant<std::monostate, ValueRef, std::vector<ValueRef>,
                 std::vector<std::optional<ValueRef>>, int64_t, double, bool, std::vector<int64_t>,
                 std::vector<double>, std::vector<bool>, std::vector<IntOrRef>, std::string,
                 ProgramDtype, ProgramLayout, ProgramMemoryFormat, ProgramDevice,
                 std::shared_ptr<const ProgramGraph>>;

struct NamedArgument {
  std::string name;  // of the operator's schema; empty for Python functions and sub-graphs
  ProgramArgument value;
  bool is_keyword = false;
};

}  // namespace lockstep::exported
