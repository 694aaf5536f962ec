#include "data/formats/arrays/image_fields.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/dataset/content_hash.h"

namespace lockstep::data {
namespace {

constexpr size_t kFieldDims = 4;

bool is_one_whole_number(const FieldValues& values) {
  return !values.is_float() && values.elements() == 1;
}

bool are_classes(const ImageRun& run, size_t field) {
  const FieldValues& values = run.fields[field];
  for (uint64_t i = 0; i < run.samples; ++i) {
    const int64_t number = values.whole(i);
    if (number < 0 || number > int64_t{limits::kLabel}) return false;
  }
  return true;
}

FieldType field_type(const FieldSpec& spec, const FieldValues& values) {
  if (values.is_float() || spec.role == FieldRole::kWeight) return FieldType::kF32;
  const bool is_byte = values.element_bytes == 1 && values.kind != 'i';
  const bool is_number = spec.role == FieldRole::kTarget && values.elements() == 1;
  return is_byte && !is_number ? FieldType::kU8 : FieldType::kI64;
}

std::string sizes_text(const FieldValues& values) {
  std::string text = "(N";
  for (const uint64_t dim : values.dims) text += ", " + std::to_string(dim);
  return text + ")";
}

Status check_field(const FieldSpec& spec, const FieldValues& values) {
  LOCKSTEP_RETURN_IF_ERROR(check_field_kind(values));
  const std::string what = values.name + " has the shape " + sizes_text(values);
  if (values.dims.size() > kFieldDims)
    return bad(what + ", but a field has at most " + std::to_string(kFieldDims) +
               " dimensions a sample; write it again with fewer");
  uint64_t bytes = bytes_of(FieldType::kI64);
  for (const uint64_t dim : values.dims) {
    if (dim == 0) return bad(what + ", so its samples hold nothing; leave it out");
    if (dim > limits::kSampleBytes / bytes)
      return bad(what + ", so a sample would take more than " +
                 std::to_string(limits::kSampleBytes) + " bytes; write it again with less");
    bytes *= dim;
  }
  if (spec.role == FieldRole::kWeight && values.elements() != 1)
    return bad(what + ", but data.weight is one number a sample; name another array");
  return Status::ok();
}

// Takes type and size from the first run; all runs are alike.
Result<FieldSpec> settled(const ImageFiles& files, size_t f, bool is_label) {
  FieldSpec spec = files.fields[f];
  const FieldValues& first = files.runs.front().fields[f];
  LOCKSTEP_RETURN_IF_ERROR(check_field(spec, first));
  spec.type = is_label ? FieldType::kI64 : field_type(spec, first);
  spec.is_label = is_label;
  const bool is_flat = is_label || spec.role == FieldRole::kWeight;
  for (const uint64_t dim : first.dims)
    if (!is_flat) spec.dims.push_back(static_cast<uint32_t>(dim));
  for (const ImageRun& run : files.runs) {
    const FieldValues& values = run.fields[f];
    LOCKSTEP_RETURN_IF_ERROR(check_field_kind(values));
    const bool is_alike = values.dims == first.dims && values.is_float() == first.is_float() &&
                          field_type(spec, values) == field_type(spec, first);
    if (!is_alike)
      return bad(values.name + " differs from " + first.name +
                 " in shape or type, so they cannot be one field; write both alike");
  }
  return spec;
}

// Checks values as the loader will, so that errors appear before the first step.
Status look_at_values(const ImageFiles& files, const FieldSpec& spec, size_t f) {
  std::vector<std::byte> record(spec.bytes());
  for (const ImageRun& run : files.runs) {
    const FieldValues& values = run.fields[f];
    if (!may_be_refused(values, spec)) continue;
    if (run.samples * values.stride_bytes > kWholeContentBytes) continue;
    for (uint64_t i = 0; i < run.samples; ++i)
      LOCKSTEP_RETURN_IF_ERROR(copy_field(values, spec, i, record.data()));
  }
  return Status::ok();
}

void take_labels(ImageFiles* files, std::optional<size_t> label) {
  for (ImageRun& run : files->runs) {
    run.label = [](uint64_t) { return int64_t{0}; };
    if (!label) continue;
    run.labels_path = run.fields[*label].name;
    run.label = [values = run.fields[*label]](uint64_t i) { return values.whole(i); };
  }
}

Status check_label(const ImageFiles& files, size_t label) {
  for (const ImageRun& run : files.runs) {
    const FieldValues& values = run.fields[label];
    LOCKSTEP_RETURN_IF_ERROR(check_field_kind(values));
    if (!is_one_whole_number(values))
      return bad(values.name + " has " + (values.is_float() ? "floats" : sizes_text(values)) +
                 ", but labels are one whole number a sample; write it again, or name it in "
                 "data.targets");
  }
  return Status::ok();
}

}  // namespace

std::optional<size_t> label_field(const ImageFiles& files) {
  for (size_t f = 0; f < files.fields.size(); ++f) {
    if (files.fields[f].role != FieldRole::kTarget) continue;
    const bool is_it = std::all_of(files.runs.begin(), files.runs.end(), [&](const ImageRun& run) {
      return check_field_kind(run.fields[f]).is_ok() && is_one_whole_number(run.fields[f]) &&
             are_classes(run, f);
    });
    if (is_it) return f;
  }
  return std::nullopt;
}

Status settle_fields(ImageFiles* files) {
  if (files->fields.empty()) return Status::ok();
  const auto label = files->label_rule ? files->label_rule->field : label_field(*files);
  if (label) LOCKSTEP_RETURN_IF_ERROR(check_label(*files, *label));
  std::vector<FieldSpec> specs;
  for (size_t f = 0; f < files->fields.size(); ++f) {
    LOCKSTEP_ASSIGN_OR_RETURN(FieldSpec spec, settled(*files, f, f == label));
    if (!spec.is_label) LOCKSTEP_RETURN_IF_ERROR(look_at_values(*files, spec, f));
    specs.push_back(std::move(spec));
  }
  take_labels(files, label);
  if (files->has_label_alone) return Status::ok();
  auto list = std::make_shared<const FieldList>(std::move(specs));
  if (list->record_bytes() > limits::kSampleBytes)
    return bad(files->paths.front() + " has fields of " + std::to_string(list->record_bytes()) +
               " bytes a sample, the limit is " + std::to_string(limits::kSampleBytes) +
               "; name fewer of them");
  files->shape.fields = std::move(list);
  return Status::ok();
}

}  // namespace lockstep::data
