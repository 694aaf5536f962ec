#include "data/formats/arrow/arrow_choice.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/column_names.h"
#include "data/base/file_errors.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kImageColumns[] = {"image", "images", "img", "pixels",
                                              "x",     "jpg",    "png"};
constexpr std::string_view kRowColumns[] = {"features", "x"};
constexpr std::string_view kTokenNames[] = {"input_ids", "tokens", "ids"};
constexpr char kExtensionName[] = "ARROW:extension:name";
constexpr char kExtensionText[] = "ARROW:extension:metadata";
constexpr char kTensor[] = "arrow.fixed_shape_tensor";
constexpr char kShape[] = "shape";
constexpr char kRowNames[] = "lockstep.columns";
constexpr char kClassNames[] = "lockstep.classes";
constexpr char kHuggingFace[] = "huggingface";
constexpr uint64_t kFewChannels = 4;

const std::string* found(const std::map<std::string, std::string>& metadata, const char* key) {
  const auto it = metadata.find(key);
  return it == metadata.end() || it->second.size() > limits::kArrowJsonBytes ? nullptr
                                                                             : &it->second;
}

Json parsed(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const ArrowField* encoded_bytes(const ArrowField& field) {
  const auto is_binary = [](const ArrowField& f) {
    return !f.is_dictionary && (f.kind == ArrowKind::kBinary || f.kind == ArrowKind::kLargeBinary);
  };
  if (is_binary(field)) return &field;
  if (field.kind != ArrowKind::kStruct) return nullptr;
  for (const ArrowField& child : field.children)
    if (child.name == "bytes" && is_binary(child)) return &child;
  return nullptr;
}

// Sizes of the lists within each other, down to one byte; empty where they do not end in uint8.
std::vector<uint64_t> list_sizes(const ArrowField& field) {
  std::vector<uint64_t> sizes;
  const ArrowField* at = &field;
  for (; at->kind == ArrowKind::kFixedList && !at->is_dictionary; at = &at->children[0])
    sizes.push_back(at->width);
  const bool is_byte =
      at->kind == ArrowKind::kInt && at->width == 1 && !at->is_signed && !at->is_dictionary;
  if (!is_byte) sizes.clear();
  return sizes;
}

bool is_pixels(const ArrowField& field) {
  return field.kind == ArrowKind::kFixedBinary || !list_sizes(field).empty();
}

bool is_row(const ArrowField& field) {
  if (field.kind != ArrowKind::kFixedList || field.is_dictionary) return false;
  const ArrowField& value = field.children[0];
  return value.kind == ArrowKind::kFloat && value.width == sizeof(float) && !value.is_dictionary;
}

bool is_number(const ArrowField& field) {
  return field.kind == ArrowKind::kInt || field.is_dictionary;
}

bool is_token_list(const ArrowField& field) {
  return is_list(field) && !field.is_dictionary && field.children[0].kind == ArrowKind::kInt &&
         !field.children[0].is_dictionary;
}

// The column called `wanted` if `fits` takes it. Without `wanted`: the column with the best name
// among those that `fits` takes, or the only one.
std::optional<size_t> chosen(const ArrowSchema& schema, const std::string& wanted,
                             std::span<const std::string_view> names,
                             const std::function<bool(const ArrowField&)>& fits) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < schema.fields.size(); ++i)
    if (fits(schema.fields[i]) && (wanted.empty() || schema.fields[i].name == wanted))
      fitting.push_back(i);
  for (const std::string_view name : names)
    for (const size_t i : fitting)
      if (schema.fields[i].name == name) return i;
  return fitting.size() == 1 ? std::optional(fitting[0]) : std::nullopt;
}

std::optional<size_t> label_of(const ArrowSchema& schema, const ColumnNames& wanted) {
  std::optional<size_t> best;
  size_t least = kLabelNames.size();
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto rank = label_rank(schema.fields[i].name, wanted);
    if (!is_number(schema.fields[i]) || !rank || *rank >= least) continue;
    least = *rank;
    best = i;
  }
  return best;
}

bool has_name(std::span<const std::string_view> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Next to images, lists of numbers are boxes or sizes, unless they are called tokens.
std::optional<size_t> tokens_of(const ArrowSchema& schema, const std::string& wanted,
                                bool has_images) {
  const auto may_be = [&](const ArrowField& field) {
    return !has_images || !wanted.empty() || has_name(kTokenNames, field.name);
  };
  const auto lists = chosen(schema, wanted, kTokenNames, [&](const ArrowField& field) {
    return is_token_list(field) && may_be(field);
  });
  if (lists) return lists;
  return chosen(schema, wanted, kTokenNames, [&](const ArrowField& field) {
    const bool is_it = !wanted.empty() || schema.fields.size() == 1;
    return field.kind == ArrowKind::kInt && !field.is_dictionary &&
           (is_it || has_name(kTokenNames, field.name));
  });
}

struct SaidShape {
  std::vector<uint64_t> sizes;
  std::string axes;  // "CHW", or empty
};

// The shape that the metadata state.
Result<SaidShape> said_shape(const ArrowField& field) {
  SaidShape said;
  const std::string* name = found(field.metadata, kExtensionName);
  const bool is_tensor = name != nullptr && *name == kTensor;
  const std::string* text = found(field.metadata, is_tensor ? kExtensionText : kShape);
  if (text == nullptr) {
    said.sizes = list_sizes(field);
    return said;
  }
  Json json = parsed(*text);
  if (is_tensor && json.is_object()) {
    const Json names = json.value("dim_names", Json::array());
    for (const Json& axis : names.is_array() ? names : Json::array())
      if (axis.is_string()) said.axes += axis.get<std::string>();
    const Json order = json.value("permutation", Json::array());
    for (size_t i = 0; order.is_array() && i < order.size(); ++i)
      if (order[i] != i)
        return bad("has permuted axes, which Lockstep does not read, in column " + field.name);
    json = json.value("shape", Json());
  }
  for (const Json& size : json.is_array() ? json : Json::array())
    said.sizes.push_back(size.is_number_unsigned() ? size.get<uint64_t>() : 0);
  return said;
}

// REQUIRES: three sizes.
Result<bool> has_channels_last(const ArrowField& field, const SaidShape& said) {
  if (said.axes == "CHW" || said.axes == "HWC") return said.axes == "HWC";
  const auto is_usual = [](uint64_t n) { return n >= 1 && n <= kFewChannels; };
  if (is_usual(said.sizes[0]) != is_usual(said.sizes[2])) return is_usual(said.sizes[2]);
  return bad("has images in column " + field.name + " of " + std::to_string(said.sizes[0]) + " x " +
             std::to_string(said.sizes[1]) + " x " + std::to_string(said.sizes[2]) +
             ", a shape that does not tell the axis of the channels; give its "
             "arrow.fixed_shape_tensor the dim_names C, H, W");
}

Result<SampleShape> shape_of(const ArrowField& field) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SaidShape said, said_shape(field));
  uint64_t stored = 1;
  for (const uint64_t size : list_sizes(field)) stored = std::min(stored * size, uint64_t{1} << 40);
  if (field.kind == ArrowKind::kFixedBinary) stored = field.width;
  if (said.sizes.size() != 2 && said.sizes.size() != 3)
    return bad("does not tell the shape of the images in column " + field.name + " (" +
               field.type_text +
               "); write it as arrow.fixed_shape_tensor, or give the field the "
               "metadata shape: [height, width, channels]");
  uint64_t bytes = 1;
  for (const uint64_t size : said.sizes) bytes = std::min(bytes * size, uint64_t{1} << 31);
  if (bytes == 0 || bytes != stored || bytes > limits::kSampleBytes)
    return bad("has images in column " + field.name + " whose shape does not fit their " +
               std::to_string(stored) + " bytes");
  bool is_last = false;
  if (said.sizes.size() == 3) {
    LOCKSTEP_ASSIGN_OR_RETURN(is_last, has_channels_last(field, said));
  }
  const size_t rows = said.sizes.size() == 3 && !is_last ? 1 : 0;
  SampleShape shape;
  shape.height = static_cast<uint32_t>(said.sizes[rows]);
  shape.width = static_cast<uint32_t>(said.sizes[rows + 1]);
  shape.channels = static_cast<uint32_t>(bytes / (said.sizes[rows] * said.sizes[rows + 1]));
  shape.channels_last = is_last && shape.channels > 1;
  return shape;
}

std::vector<std::string> classes_of(const ArrowSchema& schema, const std::string& label) {
  std::vector<std::string> classes;
  const std::string* text = found(schema.metadata, kHuggingFace);
  if (text == nullptr) return classes;
  Json at = parsed(*text);
  for (const std::string& key :
       {std::string("info"), std::string("features"), label, std::string("names")})
    at = at.is_object() ? at.value(key, Json()) : Json();
  if (!at.is_array() || at.size() > limits::kLabel + 1) return classes;
  for (const Json& name : at) {
    if (!name.is_string()) return {};
    classes.push_back(name.get<std::string>());
  }
  return classes;
}

// Metadata from which names_in() reads the names again.
std::map<std::string, std::string> names_under(const char* key,
                                               const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {{key, Json(names).dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

// The list of names in a field's metadata; empty if there is none.
std::vector<std::string> names_in(const ArrowField& field, const char* key) {
  std::vector<std::string> names;
  const std::string* text = found(field.metadata, key);
  const Json json = text == nullptr ? Json() : parsed(*text);
  if (!json.is_array()) return names;
  for (const Json& name : json) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

Status check_not_dictionary(const ArrowField& field) {
  if (!field.is_dictionary) return Status::ok();
  return bad("has column " + field.name +
             " dictionary-encoded, so its values lie elsewhere; write the column as numbers");
}

// The column of a target or a weight.
Result<size_t> field_column(const ArrowSchema& schema, const std::string& name, const char* key) {
  const auto found = std::find_if(schema.fields.begin(), schema.fields.end(),
                                  [&](const ArrowField& field) { return field.name == name; });
  if (found == schema.fields.end())
    return bad("has no column " + name + ", as " + key + " says; it has " + columns_text(schema) +
               "; name one of them");
  const ArrowField* at = &*found;
  LOCKSTEP_RETURN_IF_ERROR(check_not_dictionary(*at));
  while (at->kind == ArrowKind::kFixedList && !at->is_dictionary) at = &at->children[0];
  const bool is_of_numbers =
      !at->is_dictionary && (at->kind == ArrowKind::kInt || at->kind == ArrowKind::kFloat);
  if (!is_of_numbers)
    return bad(
        "has column " + name + " of type " + found->type_text + ", but " + key +
        " names columns of whole numbers or floats, or of fixed_size_list of these; write it "
        "as one of them");
  return static_cast<size_t>(found - schema.fields.begin());
}

// The fields of images or rows in column `image`; none if the job names no targets and no weight.
Result<std::vector<size_t>> fields_of(const ArrowSchema& schema, const ColumnNames& wanted,
                                      size_t image, std::optional<size_t> label) {
  std::vector<size_t> fields;
  if (wanted.targets.empty() && wanted.weight.empty()) return fields;
  for (const std::string& name : wanted.targets) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t column, field_column(schema, name, "data.targets"));
    fields.push_back(column);
  }
  if (fields.empty()) fields.push_back(*label);
  if (!wanted.weight.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t column,
                              field_column(schema, wanted.weight, "data.weight"));
    fields.push_back(column);
  }
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i] == image || std::find(fields.begin(), fields.begin() + static_cast<long>(i),
                                        fields[i]) != fields.begin() + static_cast<long>(i))
      return bad("has column " + schema.fields[fields[i]].name +
                 " twice among input, targets and weight; name each column once");
  return fields;
}

// Chooses images or rows. `label`: set unless the job names targets.
Result<ArrowChoice> images(const ArrowSchema& schema, const ColumnNames& wanted, size_t image,
                           std::optional<size_t> label) {
  const ArrowField& field = schema.fields[image];
  ArrowChoice choice;
  choice.samples = image;
  choice.columns.input = field.name;
  if (label) {
    LOCKSTEP_RETURN_IF_ERROR(check_not_dictionary(schema.fields[*label]));
    choice.label = *label;
    choice.columns.label = schema.fields[*label].name;
    choice.classes = classes_of(schema, choice.columns.label);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(choice.fields, fields_of(schema, wanted, image, label));
  if (encoded_bytes(field) != nullptr) return choice;
  choice.use = ArrowUse::kPixels;
  if (is_row(field)) {
    if (field.width > limits::kSampleBytes / sizeof(float))
      return bad("has rows in column " + field.name + " of " + std::to_string(field.width) +
                 " values, the limit is " + std::to_string(limits::kSampleBytes / sizeof(float)));
    choice.shape = {field.width, 1, 1};
    choice.shape.is_row = true;
    choice.row_names = names_in(field, kRowNames);
    if (choice.row_names.size() != field.width) choice.row_names.clear();
    for (const size_t target : choice.fields) {
      std::vector<std::string> classes = names_in(schema.fields[target], kClassNames);
      if (!classes.empty() && classes.size() <= limits::kLabel + 1)
        choice.classes = std::move(classes);
    }
    return choice;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(choice.shape, shape_of(field));
  return choice;
}

}  // namespace

Result<ArrowChoice> choose_columns(const ArrowSchema& schema, const ColumnNames& said) {
  if (said.inputs.size() > 1)
    return Status(Code::kUsage, "has one input, but data.inputs names " + said.inputs[0] + " and " +
                                    said.inputs[1] + "; name the column of the rows alone");
  ColumnNames wanted = said;
  if (!said.inputs.empty()) wanted.input = said.inputs[0];
  const bool has_targets = !wanted.targets.empty();
  const auto is_image = [](const ArrowField& field) {
    return encoded_bytes(field) != nullptr || is_pixels(field);
  };
  const auto image = chosen(schema, wanted.input, kImageColumns, is_image);
  const auto label = has_targets ? std::nullopt : label_of(schema, wanted);
  if (image && (label || has_targets)) return images(schema, wanted, *image, label);
  // Targets and weights may be lists of numbers, too.
  const bool may_be_tokens = !has_targets && wanted.weight.empty();
  const auto tokens =
      may_be_tokens ? tokens_of(schema, wanted.input, image.has_value()) : std::nullopt;
  if (tokens) {
    ArrowChoice choice;
    choice.use = ArrowUse::kTokens;
    choice.samples = *tokens;
    choice.columns.input = schema.fields[*tokens].name;
    return choice;
  }
  const auto row = image ? image : chosen(schema, wanted.input, kRowColumns, is_row);
  if (row && (label || has_targets)) return images(schema, wanted, *row, label);
  if (row) return bad(no_label_text(wanted, columns_text(schema)));
  if (!wanted.input.empty())
    return bad(no_input_text(wanted, "images, rows or tokens", columns_text(schema)));
  return bad(
      "has no column that Lockstep can train on: images as binary, or as fixed_size_list of uint8, "
      "called image, or rows as fixed_size_list of float32, called features, with a label; or "
      "tokens as lists of whole numbers, called input_ids or tokens (data.input names another); it "
      "has " +
      columns_text(schema));
}

bool are_names(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i)) return true;
  return false;
}

std::map<std::string, std::string> shape_metadata(const SampleShape& shape) {
  Json sizes = {shape.channels, shape.height, shape.width};
  Json axes = {"C", "H", "W"};
  if (shape.channels_last) {
    sizes = {shape.height, shape.width, shape.channels};
    axes = {"H", "W", "C"};
  }
  return {{kExtensionName, kTensor},
          {kExtensionText, Json{{"shape", sizes}, {"dim_names", axes}}.dump()}};
}

std::map<std::string, std::string> row_metadata(const std::vector<std::string>& names) {
  return names_under(kRowNames, names);
}

std::map<std::string, std::string> target_metadata(const std::vector<std::string>& classes) {
  return names_under(kClassNames, classes);
}

std::map<std::string, std::string> classes_metadata(const std::string& label,
                                                    const std::vector<std::string>& classes) {
  const Json features = {{label, {{"_type", "ClassLabel"}, {"names", classes}}}};
  const Json json = {{"info", {{"features", features}}}};
  return {{kHuggingFace, json.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

}  // namespace lockstep::data
