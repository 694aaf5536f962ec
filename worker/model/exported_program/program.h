// An exported program (torch.export) as plain values, without LibTorch. read_program() makes it
// from a .pt2 file.
//
// INVARIANTS of a program that read_program() gave, whatever the file was
//  G1 Every ValueRef is below the size of its graph's `values`, and is defined exactly once: by an
//     input of the graph or by one node, which stands before all that use it.
//  G2 Every target is one that kind_of_target() (operators.h) knows.
//  G3 ProgramInput::tensor and ::user_input are in range, and `bytes` of a tensor holds every
//     element that its shape, strides and offset reach.
//  G4 Parameters are float32 and no two elements of one share a place.
//
// Thread-safety: immutable once read; share it as const.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/model/exported_program/argument.h"

namespace lockstep::exported {

enum class ValueKind : uint8_t { kTensor, kInt, kFloat, kBool };

struct ProgramValue {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
};

// A result of a node, and the values that it becomes.
struct NodeOutput {
  enum class Kind : uint8_t {
    kNothing,  // null: skip it
    kValue,    // a tensor or a number
    kTensors,  // one list of tensors (split)
  };
  Kind kind = Kind::kNothing;
  std::vector<ValueRef> values;  // one for kValue
};

enum class NodeKind : uint8_t {
  kOperator,  // torch.ops.aten.NAME.OVERLOAD
  kPython,    // _operator.*, math.*, torch.sym_*: on numbers
  kAutocast,  // wrap_with_autocast: device type, dtype or none, enabled, cache, graph, args...
  kSetGradEnabled,  // wrap_with_set_grad_enabled: enabled, graph, args...
};

// A module around a node, outermost first.
struct ModuleOfNode {
  std::string path;  // "layer1.0.conv1", the second call "fc@1"; empty: the model itself
  std::string type;  // "torch.nn.modules.conv.Conv2d"
};

struct ProgramNode {
  NodeKind kind = NodeKind::kOperator;
  std::string target;  // as in the file: "torch.ops.aten.conv2d.default", "_operator.add"
  std::string name;    // "conv2d_1"; may be empty
  std::vector<NamedArgument> arguments;
  std::vector<NodeOutput> outputs;
  std::vector<ModuleOfNode> modules;
  std::string user_line;  // "model.py, line 9: x = self.fc(x)": for messages; may be empty
  bool is_single_tensor_return = false;  // of a sub-graph: not a list of one
};

struct ProgramGraph {
  std::vector<ProgramValue> values;
  std::vector<ValueRef> inputs;  // a sub-graph's arguments, a program's ProgramInput in this order
  std::vector<ProgramNode> nodes;
  std::vector<std::optional<ValueRef>> outputs;  // empty: None
  bool is_single_tensor_return = false;
};

// A tensor that the file holds: a parameter, a buffer or a constant. Inputs of one tied parameter
// name one ProgramTensor.
struct ProgramTensor {
  std::vector<std::string> names;  // the first in the file's order, then the other tied names
  ProgramDtype dtype = ProgramDtype::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; transposed and channels-last ones occur
  int64_t offset = 0;            // in elements, from the start of `bytes`
  bool requires_grad = false;
  bool is_parameter = false;
  bool is_persistent = true;            // false: a buffer outside of the state dict
  std::string entry;                    // its file in the archive: "data/weights/weight_3"
  std::span<const uint8_t> bytes;       // the storage, mapped
  std::shared_ptr<const void> mapping;  // keeps `bytes`

  const std::string& name() const { return names.front(); }
  uint64_t elements() const;
  bool is_row_major() const;  // its elements lie in order without holes
};

// A number of samples. Both ends belong to it.
struct SizeRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  bool operator==(const SizeRange&) const = default;
};

struct UserDim {
  SizeRange sizes;     // min == max: fixed
  std::string symbol;  // "s77"; empty: fixed, or an expression, whose sizes are not known
};

struct UserInput {
  std::string name;  // the placeholder: the argument's name in forward()
  ProgramDtype dtype = ProgramDtype::kFloat;
  std::vector<UserDim> shape;
  bool is_channels_last = false;  // by the strides of the export's example
  ProgramDevice device;
};

enum class InputKind : uint8_t {
  kParameter,
  kBuffer,
  kConstant,  // a tensor in the code of forward(): as a buffer without a name
  kUser,
  kFixed,  // an argument that the export fixed (None, a number): no node takes it
};

struct ProgramInput {
  InputKind kind = InputKind::kUser;
  std::string name;               // "fc.weight", any of its tied names; a placeholder for kUser
  std::optional<ValueRef> value;  // empty for kFixed
  uint32_t tensor = 0;            // of Program::tensors: kParameter, kBuffer, kConstant
  uint32_t user_input = 0;        // of Program::user_inputs: kUser
};

struct ProgramOutput {
  std::string name;  // "logits" of a dictionary, "0" of a tuple, "" if there is but one
  std::optional<ValueRef> value;  // empty: None
};

struct Program {
  ProgramGraph graph;
  std::vector<ProgramInput> inputs;  // as graph.inputs, and kFixed ones
  std::vector<ProgramTensor> tensors;
  std::vector<UserInput> user_inputs;
  std::vector<ProgramOutput> outputs;
  SizeRange samples;          // that a batch may have: of the first dimension of every user input
  std::string torch_version;  // "2.11.0+cu130"
  std::string sha256;         // of the file, in hex
};

// A parameter or buffer of float32 in row-major order: into the mapping if it lies so, else a copy.
std::shared_ptr<const float> row_major_floats(const ProgramTensor& tensor);

// The elements in row-major order, of any dtype. `out` has elements() times the dtype's bytes.
void gather(const ProgramTensor& tensor, uint8_t* out);

// Calls `visit` with the place of each element in the storage, in row-major order. Places count
// elements.
void for_each_place(const ProgramTensor& tensor, const std::function<void(uint64_t)>& visit);

uint32_t bytes_of(ProgramDtype dtype);
const char* name_of(ProgramDtype dtype);  // "float32"

}  // namespace lockstep::exported
