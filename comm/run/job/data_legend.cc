#include "comm/run/job/data_legend.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/utf8.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kNames[] = "class_names";
constexpr char kLeftOut[] = "class_names_left_out";
constexpr char kColumns[] = "columns";
constexpr char kNormalize[] = "normalize";
constexpr char kMean[] = "mean";
constexpr char kStd[] = "std";

Status no_legend(const std::string& why) {
  return {Code::kBadData, "the class names or constants are damaged: " + why};
}

// With the fewest digits that give the same float: 0.286, and not 0.28600001335144043.
double as_written(float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double written = value;
  std::from_chars(digits, end, written);
  return written;
}

template <typename Floats>
Json list_of(const Floats& values) {
  Json list = Json::array();
  for (const float value : values) list.push_back(as_written(value));
  return list;
}

// The name as it stands on a line of its own, whatever it holds: YAML ends lines at more characters
// than JSON escapes.
std::string quoted(const std::string& name) {
  const bool is_plain = printable(name) == name && name.find('\n') == std::string::npos;
  return Json(name).dump(-1, ' ', !is_plain, Json::error_handler_t::replace);
}

// The most that dump() makes of it, with its comma.
size_t json_bytes(const std::string& name) {
  return Json(name).dump(-1, ' ', true, Json::error_handler_t::replace).size() + 2;
}

Status take_numbers(const Json& list, google::protobuf::RepeatedField<float>& out) {
  if (!list.is_array() || list.size() > limits::kLegendChannels)
    return no_legend("normalize has no list of at most " + std::to_string(limits::kLegendChannels) +
                     " numbers");
  for (const Json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<float>()))
      return no_legend("normalize has a value that is no number");
    out.Add(value.get<float>());
  }
  return Status::ok();
}

Result<std::vector<std::string>> texts_of(const Json& names, const char* what) {
  if (!names.is_array()) return no_legend(std::string(what) + " is no list");
  std::vector<std::string> texts;
  for (const Json& name : names) {
    if (!name.is_string()) return no_legend(std::string("a name in ") + what + " is no text");
    texts.push_back(name.get<std::string>());
  }
  return texts;
}

}  // namespace

void set_class_names(std::span<const std::string> names, wire::DataLegend& legend) {
  legend.clear_class_names();
  legend.clear_left_out_names();
  size_t bytes = 0;
  for (size_t i = 0; i < names.size() && i <= limits::kLegendNames; ++i) {
    const std::string& name = names[i];
    *legend.add_class_names() = is_utf8(name) ? name : printable(name);
    bytes += json_bytes(legend.class_names().Get(static_cast<int>(i)));
    if (bytes > limits::kLegendNameBytes) break;
  }
  if (names.size() <= limits::kLegendNames && bytes <= limits::kLegendNameBytes) return;
  legend.clear_class_names();
  legend.set_left_out_names(static_cast<uint32_t>(names.size()));
}

void set_columns(std::span<const std::string> names, wire::DataLegend& legend) {
  legend.clear_columns();
  if (names.size() > limits::kLegendChannels) return;
  size_t bytes = 0;
  for (const std::string& name : names) {
    *legend.add_columns() = is_utf8(name) ? name : printable(name);
    bytes += json_bytes(*legend.columns().rbegin());
  }
  if (bytes > limits::kLegendNameBytes) legend.clear_columns();
}

wire::DataLegend merge_legends(const wire::DataLegend& stored, const wire::DataLegend& found) {
  wire::DataLegend both = stored;
  if (stored.class_names().empty()) {
    *both.mutable_class_names() = found.class_names();
    both.set_left_out_names(found.left_out_names());
  }
  if (stored.columns().empty()) *both.mutable_columns() = found.columns();
  if (stored.mean().empty()) {
    *both.mutable_mean() = found.mean();
    *both.mutable_std() = found.std();
  }
  return both;
}

Json legend_json(const wire::DataLegend& legend) {
  Json json = Json::object();
  if (!legend.class_names().empty()) {
    Json& names = json[kNames] = Json::array();
    for (const std::string& name : legend.class_names()) names.push_back(name);
  }
  if (!legend.columns().empty())
    json[kColumns] = std::vector<std::string>(legend.columns().begin(), legend.columns().end());
  if (legend.left_out_names() > 0) json[kLeftOut] = legend.left_out_names();
  if (!legend.mean().empty())
    json[kNormalize] = {{kMean, list_of(legend.mean())}, {kStd, list_of(legend.std())}};
  return json;
}

Result<wire::DataLegend> legend_from_json(const Json& json) {
  if (!json.is_object()) return no_legend("they are no map");
  wire::DataLegend legend;
  if (const auto names = json.find(kNames); names != json.end()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto texts, texts_of(*names, kNames));
    set_class_names(texts, legend);
  }
  if (const auto names = json.find(kColumns); names != json.end()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto texts, texts_of(*names, kColumns));
    set_columns(texts, legend);
  }
  if (const auto number = json.find(kLeftOut); number != json.end()) {
    if (!number->is_number_unsigned()) return no_legend("class_names_left_out is no number");
    legend.set_left_out_names(number->get<uint32_t>());
  }
  const auto constants = json.find(kNormalize);
  if (constants == json.end()) return legend;
  if (!constants->is_object() || !constants->contains(kMean) || !constants->contains(kStd))
    return no_legend("normalize is no map of mean and std");
  LOCKSTEP_RETURN_IF_ERROR(take_numbers((*constants)[kMean], *legend.mutable_mean()));
  LOCKSTEP_RETURN_IF_ERROR(take_numbers((*constants)[kStd], *legend.mutable_std()));
  if (legend.mean_size() != legend.std_size())
    return no_legend("normalize has not as many values of mean as of std");
  return legend;
}

std::string legend_comment(const wire::DataLegend& legend) {
  std::string text;
  if (!legend.class_names().empty()) text += "# Classes of the training data, by label:\n";
  for (int label = 0; label < legend.class_names_size(); ++label)
    text += "#   " + std::to_string(label) + ": " + quoted(legend.class_names(label)) + "\n";
  if (legend.left_out_names() > 0)
    text += "# The names of the " + std::to_string(legend.left_out_names()) +
            " classes are too long to be kept here.\n";
  if (!legend.mean().empty())
    text += "# What normalize computes with, by channel or column: (x - mean) / std\n#   mean: " +
            list_of(legend.mean()).dump() + "\n#   std: " + list_of(legend.std()).dump() + "\n";
  return text;
}

std::map<std::string, std::string> legend_metadata(const wire::DataLegend& legend) {
  std::map<std::string, std::string> metadata;
  const Json json = legend_json(legend);  // outlives its items
  for (const auto& [key, value] : json.items())
    metadata[key] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return metadata;
}

}  // namespace lockstep
