#include "data/dataset/fields.h"

#include "comm/base/hash.h"

namespace lockstep::data {
namespace {

const char* name_of(FieldRole role) {
  if (role == FieldRole::kInput) return "input";
  return role == FieldRole::kTarget ? "target" : "weight";
}

std::string text_of_dims(const FieldSpec& field) {
  std::string text;
  for (const uint32_t dim : field.dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

}  // namespace

std::string text_of(const FieldList& fields) {
  std::string text;
  for (const FieldSpec& field : fields.specs())
    text += (text.empty() ? "" : ", ") + field.name + " (" +
            (field.is_label ? std::string("class") : name_of(field.type)) +
            (field.dims.empty() ? "" : " " + text_of_dims(field)) + ")";
  return text.empty() ? "no label" : text;
}

std::string fingerprint_of(const FieldList& fields, const std::vector<std::string>& content) {
  std::string text = "lockstep fields 1";
  for (const FieldSpec& field : fields.specs())
    text += "\n" + std::to_string(field.name.size()) + " " + field.name + " " +
            name_of(field.role) + " " + (field.is_label ? "class" : name_of(field.type)) + " " +
            text_of_dims(field);
  for (const std::string& one : content) text += "\n" + one;
  return xxh3_hex(text.data(), text.size());
}

}  // namespace lockstep::data
