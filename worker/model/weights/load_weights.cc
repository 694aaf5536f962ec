#include "worker/model/weights/load_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "worker/model/weights/dequantize.h"
#include "worker/model/weights/name_pattern.h"
#include "worker/model/weights/weight_names.h"

namespace lockstep {
namespace {

constexpr size_t kNamesTold = 6;
constexpr std::string_view kPositions = "wpe.weight";

struct FateWord {
  WeightFate fate;
  const char* in_table;
  const char* in_sentence;
};
constexpr FateWord kFateWords[] = {
    {WeightFate::kRead, "read", "read"},
    {WeightFate::kCut, "read in part", "of which only the first rows are read"},
    {WeightFate::kSkipped, "skipped", "skipped"},
    {WeightFate::kSame, "the same", "as the program has it"},
    {WeightFate::kKept, "kept", "kept from the program, since the files lack it"},
    {WeightFate::kMissing, "MISSING", "missing in the files"},
    {WeightFate::kLeftOver, "LEFT OVER", "left over in the files"},
    {WeightFate::kOtherShape, "OTHER SHAPE", "of another shape"},
    {WeightFate::kOtherType, "OTHER TYPE", "of another type than F32, F16 and BF16"},
    {WeightFate::kOtherValue, "OTHER VALUE",
     "of another value than the program, which fixes it: export the program with these values"},
};

bool is_wrong(WeightFate fate) {
  return fate >= WeightFate::kMissing;
}

float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = std::ldexp(static_cast<float>(fraction), -24);
  return sign != 0 ? -small : small;
}

template <typename T>
T load_at(const uint8_t* data, uint64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof value);
  return value;
}

using ReadFloat = float (*)(const uint8_t* data, uint64_t i);

// Null: not a type of weights.
ReadFloat reader_of(const safetensors::Type& type) {
  const std::string_view name = type.name;
  if (name == "F32") return [](const uint8_t* d, uint64_t i) { return load_at<float>(d, i); };
  if (name == "F16")
    return [](const uint8_t* d, uint64_t i) { return from_half(load_at<uint16_t>(d, i)); };
  if (name == "BF16")
    return [](const uint8_t* d, uint64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(load_at<uint16_t>(d, i)) << 16);
    };
  return nullptr;
}

uint64_t product(std::span<const int64_t> shape) {
  uint64_t n = 1;
  for (const int64_t size : shape) n *= static_cast<uint64_t>(size);
  return n;
}

bool has_type(const StateTensor& tensor, const safetensors::Type& type) {
  if (tensor.dtype == DType::kF32) return reader_of(type) != nullptr;
  return std::string_view(dtype_safetensors_name(tensor.dtype)) == type.name;
}

// A buffer of any shape is flat in the state, and so in the files of a run. `real`: its own shape.
bool has_shape(const StateTensor& tensor, const std::vector<int64_t>& real,
               const NamedTensor& from) {
  if (tensor.section != StateSection::kBuffer) return tensor.shape == from.shape;
  const uint64_t elements = product(tensor.shape);
  return elements == product(from.shape) &&
         (elements == 1 || from.shape == tensor.shape || real.empty() || from.shape == real);
}

bool same_content(const NamedTensor& a, const NamedTensor& b) {
  const auto bytes = safetensors::bytes_of(a.file->type->bytes, a.file->shape);
  return a.file->type == b.file->type && a.file->shape == b.file->shape &&
         std::memcmp(a.file->data, b.file->data, *bytes) == 0;
}

bool same_content(const ConstantSpec& constant, const NamedTensor& from) {
  if (constant.type != from.file->type->name || constant.shape != from.shape) return false;
  const std::vector<uint8_t> mine = constant.bytes();
  return std::memcmp(mine.data(), from.file->data, mine.size()) == 0;
}

bool is_longer(const std::string& model, const StateTensor& tensor, const NamedTensor& from) {
  return model == "gpt2" && tensor.name == kPositions && from.shape.size() == 2 &&
         from.shape[1] == tensor.shape[1] && from.shape[0] > tensor.shape[0];
}

void copy_into(const StateTensor& tensor, const NamedTensor& from) {
  const uint8_t* in = from.file->data;
  const bool is_float = tensor.dtype == DType::kF32;
  if (!is_float || (!from.is_transposed && from.file->type->bytes == sizeof(float))) {
    std::memcpy(tensor.data, in, tensor.bytes);
    return;
  }
  const ReadFloat read = reader_of(*from.file->type);
  auto* out = reinterpret_cast<float*>(tensor.data);
  const uint64_t n = tensor.bytes / sizeof(float);
  if (!from.is_transposed) {
    for (uint64_t i = 0; i < n; ++i) out[i] = read(in, i);
    return;
  }
  const auto rows = static_cast<uint64_t>(from.shape[0]);
  const auto columns = static_cast<uint64_t>(from.shape[1]);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c) out[r * columns + c] = read(in, c * rows + r);
}

// Follows both sides to the table.
class Matching {
 public:
  Matching(const wire::ModelSpec& model, const ModelLayout& layout,
           std::span<const StateTensor> state, std::vector<NamedTensor> from)
      : model_(model), layout_(layout), from_(std::move(from)) {
    for (const StateTensor& tensor : state)
      if (tensor.section != StateSection::kOptimizer) state_.push_back(&tensor);
    for (const ParameterSpec& parameter : layout.parameters)
      for (const std::string& name : parameter.tied_names) first_names_[name] = parameter.name;
    for (const BufferSpec& buffer : layout.buffers) real_shapes_[buffer.name] = buffer.shape;
    for (const bool skipped : {false, true})
      for (const NamedTensor& tensor : from_)
        if (is_skipped(tensor.name) == skipped) by_name_.emplace(first_name(tensor.name), &tensor);
  }

  // The files may have a tied tensor under each of its names, if all of them have the same content.
  Status check_tied() const {
    for (const NamedTensor& tensor : from_) {
      const NamedTensor& first = *by_name_.at(first_name(tensor.name));
      if (&first == &tensor || is_skipped(tensor.name) || same_content(first, tensor)) continue;
      return {Code::kConfig, "model.init names " + model_.init() + ", which has " + first.name +
                                 " and " + tensor.name +
                                 " with different values, and the model has them as one tensor; "
                                 "name one of them in model.init_skip, or export a model that "
                                 "does not tie them"};
    }
    return Status::ok();
  }

  Status check_patterns() const {
    std::set<std::string> names;
    for (const StateTensor* tensor : state_) names.insert(tensor->name);
    for (const ConstantSpec& constant : layout_.constants)
      names.insert(constant.names.begin(), constant.names.end());
    for (const NamedTensor& tensor : from_) names.insert({tensor.name, tensor.file->name});
    const std::vector<std::string> all(names.begin(), names.end());
    for (const std::string& pattern : model_.init_skip())
      LOCKSTEP_RETURN_IF_ERROR(check_pattern("model.init_skip", pattern, all));
    return Status::ok();
  }

  WeightTable compare() {
    WeightTable table;
    std::set<std::string> known;
    for (const StateTensor* tensor : state_) {
      known.insert(tensor->name);
      const auto at = by_name_.find(tensor->name);
      const NamedTensor* from = at == by_name_.end() ? nullptr : at->second;
      const bool is_kept = from == nullptr && tensor->dtype == DType::kI64;
      const WeightFate fate = is_kept ? WeightFate::kKept : fate_of(*tensor, from);
      if (fate == WeightFate::kRead || fate == WeightFate::kCut) pairs_.emplace_back(tensor, from);
      table.rows.push_back({tensor->name, fate, safetensors::shape_text(tensor->shape),
                            from == nullptr ? "" : text_of(*from)});
    }
    for (const ConstantSpec& constant : layout_.constants) compare(constant, known, table);
    for (const NamedTensor& tensor : from_) {
      if (known.count(first_name(tensor.name)) > 0) continue;
      const bool skips = is_skipped(tensor.name) || is_skipped(tensor.file->name);
      table.rows.push_back({tensor.file->name, skips ? WeightFate::kSkipped : WeightFate::kLeftOver,
                            "", text_of(tensor)});
    }
    return table;
  }

  void copy() const {
    for (const auto& [tensor, from] : pairs_) copy_into(*tensor, *from);
  }

 private:
  static std::string text_of(const NamedTensor& tensor) {
    return tensor.file->type->name + std::string(" ") + safetensors::shape_text(tensor.shape);
  }

  const std::string& first_name(const std::string& name) const {
    const auto first = first_names_.find(name);
    return first == first_names_.end() ? name : first->second;
  }

  // Each name by itself: they may be tied in the program alone.
  void compare(const ConstantSpec& constant, std::set<std::string>& known,
               WeightTable& table) const {
    bool is_there = false;
    for (const std::string& name : constant.names) {
      known.insert(name);
      const auto at = by_name_.find(name);
      if (at == by_name_.end()) continue;
      is_there = true;
      const WeightFate fate = is_skipped(name)                      ? WeightFate::kSkipped
                              : same_content(constant, *at->second) ? WeightFate::kSame
                                                                    : WeightFate::kOtherValue;
      table.rows.push_back(
          {name, fate, safetensors::shape_text(constant.shape), text_of(*at->second)});
    }
    if (!is_there)
      table.rows.push_back(
          {constant.names.front(), WeightFate::kKept, safetensors::shape_text(constant.shape), ""});
  }

  bool is_skipped(const std::string& name) const {
    return std::ranges::any_of(model_.init_skip(), [&name](const std::string& pattern) {
      return matches_pattern(pattern, name);
    });
  }

  WeightFate fate_of(const StateTensor& tensor, const NamedTensor* from) const {
    if (is_skipped(tensor.name)) return WeightFate::kSkipped;
    if (from == nullptr) return WeightFate::kMissing;
    if (!has_type(tensor, *from->file->type)) return WeightFate::kOtherType;
    if (is_longer(model_.name(), tensor, *from)) return WeightFate::kCut;
    const auto real = real_shapes_.find(tensor.name);
    const bool fits = has_shape(
        tensor, real == real_shapes_.end() ? std::vector<int64_t>() : real->second, *from);
    return fits ? WeightFate::kRead : WeightFate::kOtherShape;
  }

  const wire::ModelSpec& model_;
  const ModelLayout& layout_;
  std::vector<const StateTensor*> state_;
  std::map<std::string, std::string> first_names_;           // by each further name
  std::map<std::string, std::vector<int64_t>> real_shapes_;  // of buffers
  std::vector<NamedTensor> from_;
  std::map<std::string, const NamedTensor*> by_name_;
  std::vector<std::pair<const StateTensor*, const NamedTensor*>> pairs_;
};

// "; 2 of another shape: fc.bias ([10], in the files F32 [1000]), ...".
std::string told(const WeightTable& table, const FateWord& word) {
  std::string text;
  size_t n = 0;
  for (const WeightRow& row : table.rows) {
    if (row.fate != word.fate || ++n > kNamesTold) continue;
    text += (n > 1 ? ", " : "") + row.name;
    if (!row.in_model.empty() && !row.in_files.empty() && is_wrong(row.fate))
      text += " (" + row.in_model + ", in the files " + row.in_files + ")";
  }
  if (n == 0) return "";
  if (n > kNamesTold) text += " and " + std::to_string(n - kNamesTold) + " more";
  return "; " + std::to_string(n) + " " + word.in_sentence + ": " + text;
}

std::string advice(const WeightTable& table, const wire::ModelSpec& model) {
  const auto has = [&](const std::string& name, WeightFate fate) {
    return std::ranges::any_of(
        table.rows, [&](const WeightRow& row) { return row.name == name && row.fate == fate; });
  };
  if (model.name().starts_with("resnet") && has("conv1.weight", WeightFate::kOtherShape))
    return "; torchvision's weights need model.stem: imagenet";
  if (model.name() == "gpt2" && has("wte.weight", WeightFate::kOtherShape))
    return "; set model.vocab, and model.size, to what the files have";
  return "; name in model.init_skip what is to start from the seed, or to be left out, such as "
         "model.init_skip=[\"" +
         std::ranges::find_if(table.rows, [](const WeightRow& r) { return is_wrong(r.fate); })
             ->name +
         "\"]";
}

}  // namespace

size_t WeightTable::count(WeightFate fate) const {
  return static_cast<size_t>(std::ranges::count(rows, fate, &WeightRow::fate));
}

std::string WeightTable::summary() const {
  const size_t read = count(WeightFate::kRead) + count(WeightFate::kCut) + count(WeightFate::kSame);
  const auto of_model =
      std::ranges::count_if(rows, [](const WeightRow& row) { return !row.in_model.empty(); });
  std::string text = std::to_string(read) + " of " + std::to_string(of_model) + " tensors";
  for (const FateWord& word : kFateWords)
    if (word.fate != WeightFate::kRead && word.fate != WeightFate::kSame) text += told(*this, word);
  return text;
}

std::string WeightTable::text() const {
  size_t name = 0;
  size_t model = 0;
  for (const WeightRow& row : rows) {
    name = std::max(name, row.name.size());
    model = std::max(model, row.in_model.size());
  }
  const auto padded = [](std::string word, size_t width) {
    word.resize(std::max(width, word.size()), ' ');
    return word + "  ";
  };
  std::string out;
  for (const WeightRow& row : rows) {
    const auto* word = std::ranges::find(kFateWords, row.fate, &FateWord::fate);
    out += padded(word->in_table, 12) + padded(row.name, name) +
           padded(row.in_model.empty() ? "-" : row.in_model, model) +
           (row.in_files.empty() ? "-" : row.in_files) + "\n";
  }
  return out;
}

namespace {

bool has_wrong(const WeightTable& table) {
  return std::ranges::any_of(table.rows, [](const WeightRow& row) { return is_wrong(row.fate); });
}

}  // namespace

Status load_own_weights(const std::string& path, const wire::ModelSpec& model,
                        std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path, WeightSource::kRun));
  const auto floats = dequantized(files);
  if (!floats.is_ok()) return floats.status().with_context(path);
  LOCKSTEP_ASSIGN_OR_RETURN(auto from, name_tensors(model.name(), path, floats->tensors));
  wire::ModelSpec whole = model;
  whole.clear_init_skip();
  const ModelLayout no_layout;  // names and shapes come from the state
  Matching matching(whole, no_layout, state, std::move(from));
  const WeightTable table = matching.compare();
  if (has_wrong(table) || table.count(WeightFate::kCut) > 0)
    return {Code::kBadData, path + " does not hold the weights of this " + model.name() + ": " +
                                table.summary() + "; take another checkpoint, or export again"};
  matching.copy();
  return files.unchanged();
}

Result<WeightTable> load_weights(const WeightFiles& files, const wire::ModelSpec& model,
                                 const ModelLayout& layout, std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto from, name_tensors(model.name(), "model.init", files.tensors()));
  Matching matching(model, layout, state, std::move(from));
  LOCKSTEP_RETURN_IF_ERROR(matching.check_patterns());
  LOCKSTEP_RETURN_IF_ERROR(matching.check_tied());
  WeightTable table = matching.compare();
  if (has_wrong(table))
    return Status(Code::kConfig, "model.init names " + model.init() + ", which does not fit " +
                                     model.name() + ": " + table.summary() + advice(table, model));
  matching.copy();
  LOCKSTEP_RETURN_IF_ERROR(files.unchanged());
  return table;
}

}  // namespace lockstep
