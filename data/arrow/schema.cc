#include "data/arrow/schema.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {
namespace {

constexpr size_t kColumnsShown = 12;

size_t nodes_of(const ArrowField& field) {
  size_t nodes = 1;
  for (const ArrowField& child : field.children) nodes += nodes_of(child);
  return nodes;
}

}  // namespace

size_t ArrowSchema::nodes() const {
  size_t nodes = 0;
  for (const ArrowField& field : fields) nodes += nodes_of(field);
  return nodes;
}

std::string columns_text(const ArrowSchema& schema) {
  if (schema.fields.empty()) return "no column";
  std::string text;
  for (size_t i = 0; i < std::min(schema.fields.size(), kColumnsShown); ++i)
    text += (i > 0 ? ", " : "") + schema.fields[i].name + " (" + schema.fields[i].type_text + ")";
  const size_t more = schema.fields.size() - std::min(schema.fields.size(), kColumnsShown);
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

ArrowField arrow_int(std::string name, uint32_t bytes, bool is_signed) {
  ArrowField field;
  field.name = std::move(name);
  field.kind = ArrowKind::kInt;
  field.width = bytes;
  field.is_signed = is_signed;
  field.buffers = 2;
  field.type_text = (is_signed ? "int" : "uint") + std::to_string(8 * bytes);
  return field;
}

ArrowField arrow_float32(std::string name) {
  ArrowField field;
  field.name = std::move(name);
  field.kind = ArrowKind::kFloat;
  field.width = sizeof(float);
  field.buffers = 2;
  field.type_text = "float32";
  return field;
}

ArrowField arrow_list(std::string name, ArrowField value) {
  ArrowField field;
  field.name = std::move(name);
  field.kind = ArrowKind::kList;
  field.buffers = 2;
  field.type_text = "list of " + value.type_text;
  field.children = {std::move(value)};
  return field;
}

}  // namespace lockstep::data
