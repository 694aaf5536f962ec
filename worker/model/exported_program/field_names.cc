#include "worker/model/exported_program/field_names.h"

#include "comm/run/job/data_formats.h"

namespace lockstep::exported {

FieldNames field_names(const wire::DataSpec& data) {
  FieldNames out;
  if (data.targets().empty() && data.inputs().empty()) return out;
  // A table's inputs are the columns of one row.
  const bool is_table = fields_of_format(data.train().format()) == FormatFields::kTargets;
  for (int i = 1; !is_table && i < data.inputs().size(); ++i) out.names.push_back(data.inputs(i));
  out.inputs = static_cast<uint32_t>(out.names.size());
  out.names.insert(out.names.end(), data.targets().begin(), data.targets().end());
  if (out.inputs > 0 && data.targets().empty()) out.names.push_back("label");
  return out;
}

FieldNames field_names(const data::SampleShape& shape) {
  FieldNames out;
  if (shape.fields == nullptr) return out;
  for (const data::FieldSpec& spec : shape.fields->specs()) {
    if (spec.role == data::FieldRole::kWeight) continue;
    if (spec.is_label) out.label = static_cast<uint32_t>(out.names.size());
    if (spec.role == data::FieldRole::kInput) ++out.inputs;
    out.names.push_back(spec.name);
  }
  return out;
}

}  // namespace lockstep::exported
