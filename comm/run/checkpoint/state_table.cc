#include "comm/run/checkpoint/state_table.h"

#include <set>
#include <utility>

#include "comm/base/limits.h"
#include "comm/run/checkpoint/safetensors.h"

namespace lockstep {
namespace {

constexpr uint64_t kNameLimit = 65'535;
constexpr StateSection kSections[] = {StateSection::kParameter, StateSection::kBuffer,
                                      StateSection::kOptimizer};

void append_number(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

// Takes numbers and texts from the front; everything is empty after the end.
class TableBytes {
 public:
  explicit TableBytes(std::string_view left) : left_(left) {}
  bool is_cut() const { return is_cut_; }
  bool is_at_end() const { return left_.empty(); }
  std::string_view take(size_t bytes) {
    if (bytes > left_.size()) {
      is_cut_ = true;
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    size_t at = 0;
    for (const char c : take(bytes)) value |= uint64_t{static_cast<uint8_t>(c)} << (8 * at++);
    return value;
  }

 private:
  std::string_view left_;
  bool is_cut_ = false;
};

Status bad_table(const std::string& what) {
  return Status(Code::kBadData, "the table of a state is malformed: " + what);
}

// Parses one tensor, and checks what can be checked without the others.
Result<StateTensor> parse_tensor(TableBytes& bytes, uint64_t number) {
  StateTensor tensor;
  tensor.name = bytes.take(bytes.number(2));
  const uint64_t section = bytes.number(1);
  const uint64_t dtype = bytes.number(1);
  const uint64_t dims = bytes.number(1);
  const auto bad_tensor = [&](const std::string& what) {
    return bad_table("tensor " + std::to_string(number) + ", '" + tensor.name + "', " + what);
  };
  if (dims > limits::kTensorDims)
    return bad_tensor("has " + std::to_string(dims) + " dimensions, more than " +
                      std::to_string(limits::kTensorDims));
  for (uint64_t i = 0; i < dims; ++i)
    tensor.shape.push_back(static_cast<int64_t>(bytes.number(sizeof(int64_t))));
  if (bytes.is_cut()) return bad_tensor("is cut off");
  if (tensor.name.empty()) return bad_tensor("has no name");
  if (section >= std::size(kSections))
    return bad_tensor("is of an unknown section, " + std::to_string(section));
  if (dtype >= std::size(kDTypes))
    return bad_tensor("is of an unknown dtype, " + std::to_string(dtype));
  tensor.section = kSections[section];
  tensor.dtype = kDTypes[dtype];
  const auto size = tensor_bytes(tensor.dtype, tensor.shape);
  if (!size)
    return bad_tensor("of shape " + safetensors::shape_text(tensor.shape) +
                      " has no size in bytes");
  tensor.bytes = *size;
  return tensor;
}

}  // namespace

Result<std::string> state_table(std::span<const StateTensor> state) {
  if (state.size() > limits::kTensors)
    return Status(Code::kUsage, "a state of " + std::to_string(state.size()) +
                                    " tensors is over the limit of " +
                                    std::to_string(limits::kTensors));
  std::string out;
  append_number(out, state.size(), 4);
  for (const StateTensor& tensor : state) {
    if (tensor.name.size() > kNameLimit || tensor.shape.size() > limits::kTensorDims)
      return Status(Code::kUsage, "tensor '" + tensor.name.substr(0, 64) +
                                      "' has a name or a shape over the limits");
    append_number(out, tensor.name.size(), 2);
    out += tensor.name;
    append_number(out, static_cast<uint64_t>(tensor.section), 1);
    append_number(out, static_cast<uint64_t>(tensor.dtype), 1);
    append_number(out, tensor.shape.size(), 1);
    for (const int64_t dim : tensor.shape)
      append_number(out, static_cast<uint64_t>(dim), sizeof dim);
  }
  return out;
}

Result<StateTable> parse_state_table(std::string_view bytes) {
  TableBytes left(bytes);
  const uint64_t count = left.number(4);
  if (left.is_cut()) return bad_table("it has no number of tensors");
  if (count > limits::kTensors) return bad_table("it lists too many tensors");
  StateTable table;
  std::set<std::pair<bool, std::string>> names;
  for (uint64_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(StateTensor tensor, parse_tensor(left, i));
    if (!names.emplace(tensor.section == StateSection::kOptimizer, tensor.name).second)
      return bad_table("tensor '" + tensor.name + "' comes twice");
    if (__builtin_add_overflow(table.bytes, tensor.bytes, &table.bytes))
      return bad_table("its tensors have no size in bytes");
    table.tensors.push_back(std::move(tensor));
  }
  if (!left.is_at_end()) return bad_table("something follows its last tensor");
  return table;
}

}  // namespace lockstep
