// Images with masks in directories that belong together (stem_directory.h), as data.inputs and
// data.targets name them.
#include <string>
#include <utility>

#include "data/formats/format_rows.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/images/mask_fields.h"
#include "data/formats/images/stem_directory.h"

namespace lockstep::data {
namespace {

constexpr char kImages[] = "images";  // the first input, where the job names none

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
                 far = source.far](uint32_t threads, DamagedFiles& damaged) {
    return look_at_stems(directory, kind, threads, progress, far.get(), damaged);
  };
  return source;
}

// kUsage if the job names no mask, or a weight.
Result<EncodedSource> find_masked_directories(const EncodedRequest& request) {
  const ColumnNames& names = request.columns;
  if (!names.weight.empty()) return masks_have_no_weights(names.weight);
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

// Directories that the job does not name do not count.
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

}  // namespace

constinit const DataFormat kImageMaskFormat{.name = "image_mask",
                                            .find = find_masked_directories,
                                            .has_eval = has_stem_splits,
                                            .serves_both = unless<has_stem_splits>,
                                            .named_splits = masked_splits};

}  // namespace lockstep::data
