#include "data/formats/shards/webdataset_fields.h"

#include <string>

#include "comm/base/text/lower_case.h"
#include "data/formats/images/mask_fields.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

bool is_mask_name(const std::string& name) {
  return has_image_ending("." + name) || has_foreign_image_ending("." + name);
}

}  // namespace

Result<TarFields> tar_fields(const ColumnNames& wanted) {
  TarFields out{.columns = wanted, .masks = {}, .fields = {}};
  if (!wanted.has_fields()) return out;
  if (!wanted.weight.empty()) return masks_have_no_weights(wanted.weight);
  if (!wanted.inputs.empty()) out.columns.input = lower_case(wanted.inputs.front());
  const auto add = [&](const std::string& name, FieldRole role) {
    out.masks.endings.push_back(lower_case(name));
    out.fields.push_back(mask_field(name, role));
  };
  for (size_t i = 1; i < wanted.inputs.size(); ++i) {
    if (!is_mask_name(wanted.inputs[i]))
      return Status(Code::kUsage, "data.inputs names " + wanted.inputs[i] +
                                      " after the image, which does not end like an image; name "
                                      "members of WebDataset as mask.png");
    add(wanted.inputs[i], FieldRole::kInput);
  }
  out.masks.has_label = wanted.targets.empty();
  if (wanted.targets.empty())
    out.fields.push_back({.name = wanted.label.empty() ? "label" : wanted.label,
                          .type = FieldType::kI64,
                          .is_label = true});
  for (const std::string& name : wanted.targets) {
    if (is_mask_name(name)) {
      add(name, FieldRole::kTarget);
      continue;
    }
    if (out.masks.has_label)
      return Status(Code::kUsage, "data.targets names two labels, " + out.columns.label + " and " +
                                      name +
                                      ", but a sample of WebDataset has one; keep one, "
                                      "and name masks by an ending such as mask.png");
    out.masks.has_label = true;
    out.columns.label = name;
    out.fields.push_back({.name = name, .type = FieldType::kI64, .is_label = true});
  }
  return out;
}

}  // namespace lockstep::data
