#include "data/open/masked_formats.h"

#include <utility>

#include "data/base/lower_case.h"
#include "data/formats/images/stem_directory.h"
#include "data/image/image_info.h"

namespace lockstep::data {
namespace {

constexpr char kImages[] = "images";

Status no_weights(const std::string& weight) {
  return {Code::kUsage, "data.weight is " + weight +
                            ", but images with masks have no weights; leave data.weight out"};
}

FieldSpec mask_field(const std::string& name, FieldRole role) {
  return {.name = name, .role = role, .type = FieldType::kU8, .follows_image = true};
}

Result<EncodedSource> stem_source(const EncodedRequest& request, const std::string& name,
                                  PictureKind kind) {
  EncodedSource source;
  source.format = "image_mask";
  LOCKSTEP_ASSIGN_OR_RETURN(source.directory,
                            find_stem_directory(request.path, name, request.split));
  source.shown_directory = source.directory;
  source.far = request.far;
  if (kind == PictureKind::kMask) source.variant = "mask";
  source.look = [directory = source.directory, kind, &progress = request.progress,
                 far = source.far](uint32_t threads, DamagedFiles* damaged) {
    return look_at_stems(directory, kind, threads, progress, far.get(), damaged);
  };
  return source;
}

bool is_mask_name(const std::string& name) {
  return has_image_ending("." + name) || has_foreign_image_ending("." + name);
}

}  // namespace

Result<EncodedSource> find_masked_directories(const EncodedRequest& request) {
  const ColumnNames& names = request.columns;
  if (!names.weight.empty()) return no_weights(names.weight);
  LOCKSTEP_ASSIGN_OR_RETURN(
      EncodedSource source,
      stem_source(request, names.inputs.empty() ? kImages : names.inputs.front(),
                  PictureKind::kImage));
  source.joins_by_stem = true;
  for (size_t i = 1; i < names.inputs.size(); ++i)
    source.fields.push_back(mask_field(names.inputs[i], FieldRole::kInput));
  for (const std::string& name : names.targets)
    source.fields.push_back(mask_field(name, FieldRole::kTarget));
  if (source.fields.empty())
    return Status(Code::kUsage, "data.targets names no masks, but " + request.path +
                                    " is of format image_mask; set data.targets to the directory "
                                    "of the masks, as data.targets: [masks]");
  for (const FieldSpec& field : source.fields) {
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource mask,
                              stem_source(request, field.name, PictureKind::kMask));
    source.masks.push_back(std::move(mask));
  }
  return source;
}

NamedSplits masked_splits(const std::string& path, const ColumnNames& columns) {
  const auto directory_for = [&](Split split) {
    return find_stem_directory(path, columns.inputs.empty() ? kImages : columns.inputs.front(),
                               split);
  };
  const auto train = directory_for(Split::kTrain);
  const auto eval = directory_for(Split::kEval);
  const bool has_eval = eval.is_ok() && (!train.is_ok() || *train != *eval);
  return {.has_any = train.is_ok() || eval.is_ok(), .has_eval = has_eval, .serves_both = !has_eval};
}

Result<TarFields> tar_fields(const ColumnNames& wanted) {
  TarFields out{.columns = wanted, .masks = {}, .fields = {}};
  if (!wanted.has_fields()) return out;
  if (!wanted.weight.empty()) return no_weights(wanted.weight);
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
