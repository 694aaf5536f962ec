#include "deploy/cli/job/job_schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "comm/base/log.h"
#include "comm/base/text/nearest.h"
#include "comm/base/text/utf8.h"
#include "deploy/cli/job/job_hints.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A field of JobSpec with the message that holds it.
struct Field {
  Message* owner = nullptr;
  const FieldDescriptor* descriptor = nullptr;
};

// Takes the first word off a key.
std::string next_word(std::string_view& key) {
  const size_t dot = key.find('.');
  std::string word(key.substr(0, dot));
  key.remove_prefix(dot == std::string_view::npos ? key.size() : dot + 1);
  return word;
}

bool is_map_list(const FieldDescriptor& field) {
  return field.is_repeated() && field.message_type() != nullptr;
}

// The field of a key. For an element of a list: the list.
const FieldDescriptor* field_of(std::string_view key) {
  const auto* type = wire::JobSpec::descriptor();
  if (key.ends_with('.')) return nullptr;
  while (type != nullptr) {
    const FieldDescriptor* const field = type->FindFieldByName(next_word(key));
    if (field == nullptr) return nullptr;
    if (is_map_list(*field)) next_word(key);  // the element's number
    if (key.empty()) return field;
    type = field->message_type();
  }
  return nullptr;
}

Field locate(std::string_view key, wire::JobSpec& spec, size_t element) {
  Message* owner = &spec;
  while (true) {
    const FieldDescriptor* const field = owner->GetDescriptor()->FindFieldByName(next_word(key));
    if (key.empty()) return {owner, field};
    const auto* reflection = owner->GetReflection();
    if (!is_map_list(*field)) {
      owner = reflection->MutableMessage(owner, field);
      continue;
    }
    next_word(key);
    while (static_cast<size_t>(reflection->FieldSize(*owner, field)) <= element)
      reflection->AddMessage(owner, field);
    owner = reflection->MutableRepeatedMessage(owner, field, static_cast<int>(element));
  }
}

std::string number_text(double value) {
  constexpr double kExactWhole = 1e15;  // below, whole numbers are written out
  if (value == std::floor(value) && std::abs(value) < kExactWhole)
    return std::to_string(static_cast<int64_t>(value));
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string range_text(const NumberRange& range) {
  std::string low = (range.min_exclusive ? "above " : "at least ") + number_text(range.min);
  if (std::isinf(range.max)) return low;
  return low + " and " + (range.max_exclusive ? "below " : "at most ") + number_text(range.max);
}

bool in_range(double value, const NumberRange& range) {
  const bool above = range.min_exclusive ? value > range.min : value >= range.min;
  const bool below = range.max_exclusive ? value < range.max : value <= range.max;
  return above && below;  // false for nan
}

Status wrong(const JobKey& key, std::string_view value, const std::string& should) {
  constexpr size_t kShown = 80;
  std::string shown(value.substr(0, kShown));
  if (value.size() > kShown) shown += "...";
  return Status(Code::kUsage,
                std::string(key.key) + " is \"" + json_escape(shown) + "\" but must be " + should);
}

template <typename T>
bool parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Status set_whole(const JobKey& key, const std::string& text, Field field) {
  const bool is_zero = !key.zero.empty() && text == key.zero;
  const std::string should = "a whole number, " + range_text(key.range) +
                             (key.zero.empty() ? "" : ", or " + std::string(key.zero));
  double probe = 0;
  uint64_t value = 0;
  if (!is_zero && !parse_all(text, value)) {
    // A number that is only outside the range, or not whole, deserves the same sentence.
    const bool says_enough = parse_all(text, probe) || !key.zero.empty();
    return wrong(key, text, says_enough ? should : should + ", not a word");
  }
  if (!is_zero && !in_range(static_cast<double>(value), key.range)) return wrong(key, text, should);
  const auto* reflection = field.owner->GetReflection();
  if (field.descriptor->cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
    reflection->SetUInt32(field.owner, field.descriptor, static_cast<uint32_t>(value));
  else
    reflection->SetUInt64(field.owner, field.descriptor, value);
  return Status::ok();
}

Status set_number(const JobKey& key, const std::string& text, Field field) {
  double value = 0;
  const std::string should = "a number, " + range_text(key.range);
  if (!parse_all(text, value)) return wrong(key, text, should);
  if (!std::isfinite(value) || !in_range(value, key.range)) return wrong(key, text, should);
  if (value == 0) value = 0;  // -0 would print and hash as another value
  field.owner->GetReflection()->SetDouble(field.owner, field.descriptor, value);
  return Status::ok();
}

Status check_text(const JobKey& key, const std::string& text) {
  if (!key.names.empty()) {
    if (std::find(key.names.begin(), key.names.end(), text) != key.names.end()) return Status::ok();
    return wrong(key, text, join_names(key.names) + job_value_hint(key, text));
  }
  // It goes into labels, file names and messages of one line.
  if (!is_printable_utf8(text)) return wrong(key, text, "printable UTF-8 text");
  if (text.size() > 4096) return wrong(key, text, "at most 4096 bytes long");
  if (text.empty() && (key.required() || key.key == "job")) return wrong(key, text, "not empty");
  return Status::ok();
}

Status set_list(const JobKey& key, const std::vector<std::string>& items, Field field) {
  const auto* reflection = field.owner->GetReflection();
  reflection->ClearField(field.owner, field.descriptor);
  const bool are_words = key.key == "script.args";  // of a command line: any, and each where it is
  for (const std::string& item : items) {
    if (item.empty() && (!are_words || items.size() == 1)) continue;  // "a.b=" is the empty list
    LOCKSTEP_RETURN_IF_ERROR(check_text(key, item));
    if (!are_words && std::count(items.begin(), items.end(), item) > 1)
      return Status(Code::kUsage, std::string(key.key) + " names " + item + " twice");
    reflection->AddString(field.owner, field.descriptor, item);
  }
  return Status::ok();
}

}  // namespace

size_t list_size(std::string_view list, const wire::JobSpec& spec) {
  wire::JobSpec copy = spec;  // locate() gives what may be changed
  const Field field = locate(list, copy, 0);
  const auto* reflection = field.owner->GetReflection();
  return static_cast<size_t>(reflection->FieldSize(*field.owner, field.descriptor));
}

void set_list_size(std::string_view list, size_t elements, wire::JobSpec& spec) {
  const Field field = locate(list, spec, 0);
  const auto* reflection = field.owner->GetReflection();
  const auto size = [&] {
    return static_cast<size_t>(reflection->FieldSize(*field.owner, field.descriptor));
  };
  while (size() > elements) reflection->RemoveLast(field.owner, field.descriptor);
  while (size() < elements) reflection->AddMessage(field.owner, field.descriptor);
}

bool is_job_group(std::string_view key) {
  const FieldDescriptor* field = field_of(key);
  return field != nullptr && field->message_type() != nullptr;
}

const JobKey* shorthand_of_group(std::string_view group) {
  for (const JobKey& row : job_keys())
    if (row.shorthand && row.key.substr(0, row.key.rfind('.')) == group) return &row;
  return nullptr;
}

bool is_list(const JobKey& key) {
  return field_of(key.key)->is_repeated();
}

Status set_job_value(const JobKey& row, const std::vector<std::string>& items, wire::JobSpec& spec,
                     size_t element) {
  const Field field = locate(row.key, spec, element);
  const std::string name = numbered_key(row, element);
  JobKey key = row;
  key.key = name;  // for messages
  if (field.descriptor->is_repeated()) return set_list(key, items, field);
  if (items.size() != 1)
    return Status(Code::kUsage, std::string(key.key) + " is a list but must be one value");
  const std::string& text = items[0];
  const auto* reflection = field.owner->GetReflection();
  switch (field.descriptor->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return set_whole(key, text, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set_number(key, text, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return wrong(key, text, "true or false");
      reflection->SetBool(field.owner, field.descriptor, text == "true");
      return Status::ok();
    default:
      LOCKSTEP_RETURN_IF_ERROR(check_text(key, text));
      reflection->SetString(field.owner, field.descriptor, text);
      return Status::ok();
  }
}

std::vector<std::string> job_value(const JobKey& key, const wire::JobSpec& spec, size_t element) {
  const FieldDescriptor* field = field_of(key.key);
  const Message* owner = &spec;
  std::string_view path = key.key;
  for (std::string word = next_word(path); !path.empty(); word = next_word(path)) {
    const auto* group = owner->GetDescriptor()->FindFieldByName(word);
    const auto* reflection = owner->GetReflection();
    if (is_map_list(*group)) next_word(path);
    owner = is_map_list(*group)
                ? &reflection->GetRepeatedMessage(*owner, group, static_cast<int>(element))
                : &reflection->GetMessage(*owner, group);
  }
  const auto* reflection = owner->GetReflection();
  if (field->is_repeated()) {
    std::vector<std::string> items;
    for (int i = 0; i < reflection->FieldSize(*owner, field); ++i)
      items.push_back(reflection->GetRepeatedString(*owner, field, i));
    return items;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return {std::to_string(reflection->GetUInt32(*owner, field))};
    case FieldDescriptor::CPPTYPE_UINT64:
      if (!key.zero.empty() && reflection->GetUInt64(*owner, field) == 0)
        return {std::string(key.zero)};
      return {std::to_string(reflection->GetUInt64(*owner, field))};
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {number_text(reflection->GetDouble(*owner, field))};
    case FieldDescriptor::CPPTYPE_BOOL:
      return {reflection->GetBool(*owner, field) ? "true" : "false"};
    default:
      return {reflection->GetString(*owner, field)};
  }
}

std::string job_value_text(const JobKey& key, const wire::JobSpec& spec, size_t element) {
  const std::vector<std::string> items = job_value(key, spec, element);
  if (!is_list(key)) return items[0].empty() ? "(empty)" : items[0];
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + item;
  return out + "]";
}

}  // namespace lockstep
