#include "worker/model/exported_program/json_fields.h"

#include <cmath>
#include <limits>

#include "comm/base/limits.h"

namespace lockstep::exported {
namespace {

const nlohmann::json& null_json() {
  static const nlohmann::json null;
  return null;
}

Status too_large(const std::string& what) {
  return {Code::kBadData, "holds JSON " + what + "; export a smaller model"};
}

// Before anything is made of the text: a parser's memory and stack follow these numbers.
Status check_size(std::string_view text) {
  if (text.size() > limits::kProgramJsonBytes)
    return too_large("of " + std::to_string(text.size()) + " bytes, more than the limit of " +
                     std::to_string(limits::kProgramJsonBytes));
  size_t levels = 0;
  size_t values = 1;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted) {
      if (c == '\\') ++i;
      is_quoted = c != '"';
      continue;
    }
    is_quoted = c == '"';
    if (c == '[' || c == '{') ++levels;
    if (c == '[' || c == '{' || c == ',') ++values;
    if ((c == ']' || c == '}') && levels > 0) --levels;
    if (levels > limits::kProgramJsonLevels || values > limits::kProgramJsonValues)
      return too_large("of more than " + std::to_string(limits::kProgramJsonLevels) +
                       " levels or " + std::to_string(limits::kProgramJsonValues) + " values");
  }
  return Status::ok();
}

}  // namespace

Result<nlohmann::json> parse_limited(std::string_view text) {
  LOCKSTEP_RETURN_IF_ERROR(check_size(text));
  auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded())
    return Status(Code::kBadData, "holds JSON that cannot be parsed; export the model again");
  return parsed;
}

void JsonFields::malformed(const std::string& what) {
  fail({Code::kBadData, "does not follow PyTorch's export schema 8: " + what +
                            "; export the model again with torch 2.11"});
}

const nlohmann::json& JsonFields::optional(const nlohmann::json& from, const char* key) const {
  if (!from.is_object()) return null_json();
  const auto found = from.find(key);
  return found == from.end() ? null_json() : *found;
}

const nlohmann::json& JsonFields::object(const nlohmann::json& from, const char* key) {
  const nlohmann::json& found = optional(from, key);
  if (!found.is_object()) malformed(std::string(key) + " is not an object");
  return found.is_object() ? found : null_json();
}

const nlohmann::json& JsonFields::list(const nlohmann::json& from, const char* key) {
  const nlohmann::json& found = optional(from, key);
  if (!found.is_array()) malformed(std::string(key) + " is not a list");
  return found.is_array() ? found : null_json();
}

std::string JsonFields::text(const nlohmann::json& from, const char* key) {
  return as_text(optional(from, key), key);
}

int64_t JsonFields::integer(const nlohmann::json& from, const char* key) {
  return as_integer(optional(from, key), key);
}

bool JsonFields::boolean(const nlohmann::json& from, const char* key) {
  return as_boolean(optional(from, key), key);
}

std::string JsonFields::as_text(const nlohmann::json& value, const char* what) {
  if (value.is_string()) return value.get<std::string>();
  malformed(std::string(what) + " is not a text");
  return {};
}

int64_t JsonFields::as_integer(const nlohmann::json& value, const char* what) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}
                        : value.is_number_integer();
  if (fits) return value.get<int64_t>();
  malformed(std::string(what) + " is not a whole number of 64 bits");
  return 0;
}

double JsonFields::as_number(const nlohmann::json& value, const char* what) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  malformed(std::string(what) + " is not a number");
  return 0;
}

bool JsonFields::as_boolean(const nlohmann::json& value, const char* what) {
  if (value.is_boolean()) return value.get<bool>();
  malformed(std::string(what) + " is neither true nor false");
  return false;
}

std::string JsonFields::kind(const nlohmann::json& tagged, const char* what) {
  if (tagged.is_object() && tagged.size() == 1) return tagged.begin().key();
  malformed(std::string(what) + " is not of one kind");
  return {};
}

}  // namespace lockstep::exported
