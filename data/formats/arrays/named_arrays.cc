#include "data/formats/arrays/named_arrays.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/files/split_directory.h"
#include "data/formats/arrays/array_names.h"
#include "data/formats/arrays/image_dataset.h"
#include "data/formats/arrays/image_fields.h"
#include "data/formats/arrays/npy_dataset.h"

namespace lockstep::data {
namespace {

// The arrays at a path, or in its directory of a split.
struct ArraysThere {
  std::vector<ListedArray> arrays;
  std::string where;  // for messages
  bool is_of_split = false;

  std::vector<NamedArray> names() const {
    std::vector<NamedArray> names;
    for (const ListedArray& array : arrays) names.push_back({array.name, array.file});
    return names;
  }
};

Result<ArraysThere> arrays_at(ListArraysFn list, const std::string& path, Split split) {
  ArraysThere there{{}, path, false};
  LOCKSTEP_ASSIGN_OR_RETURN(there.arrays, list(path));
  std::error_code error;
  const bool may_be_below = there.arrays.empty() && std::filesystem::is_directory(path, error) &&
                            has_split_directories(path);
  if (!may_be_below) return there;
  there.where = split_directory(path, split);
  there.is_of_split = true;
  LOCKSTEP_ASSIGN_OR_RETURN(there.arrays, list(there.where));
  return there;
}

// The arrays of one group, which belong together.
using OpenedGroup = std::vector<NpyArray>;

struct Chosen {
  ArraysThere there;
  ArrayGroups groups;
};

Result<Chosen> chosen_at(ListArraysFn list, const std::string& path, const ColumnNames& columns,
                         Split split) {
  Chosen chosen;
  LOCKSTEP_ASSIGN_OR_RETURN(chosen.there, arrays_at(list, path, split));
  LOCKSTEP_ASSIGN_OR_RETURN(chosen.groups,
                            choose_by_name(chosen.there.names(), wanted_arrays(columns), split,
                                           chosen.there.where, chosen.there.is_of_split));
  return chosen;
}

Status check_sizes(const NpyArray& array) {
  const NpyHeader& header = array.header;
  if (header.dims.empty())
    return bad(array.name +
               " is a single number, but an array has its samples in the first "
               "dimension; name another one");
  if (header.dims[0] == 0) return bad(array.name + " holds no sample; name another one");
  if (header.content_bytes == 0)
    return bad(array.name + " has the shape " + header.shape_text() +
               ", so its samples hold nothing; leave it out");
  return Status::ok();
}

Result<OpenedGroup> open_group(const Chosen& chosen, const std::vector<size_t>& group,
                               const NamedArraysRequest& request) {
  OpenedGroup arrays;
  for (const size_t i : group) {
    LOCKSTEP_ASSIGN_OR_RETURN(NpyArray array,
                              chosen.there.arrays[i].open(request.cache_dir, request.progress));
    LOCKSTEP_RETURN_IF_ERROR(check_sizes(array));
    if (!arrays.empty() && array.header.dims[0] != arrays[0].header.dims[0])
      return bad(arrays[0].name + " holds " + std::to_string(arrays[0].header.dims[0]) +
                 " samples, but " + array.name + " holds " + std::to_string(array.header.dims[0]) +
                 "; they do not belong together, so write both with the same samples");
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Result<SampleShape> shape_of_ids(const NpyArray& input) {
  const uint64_t ids = input.header.dims[1];
  if (ids > limits::kSampleBytes / sizeof(int64_t))
    return bad(input.name + " has rows of " + std::to_string(ids) + " ids, the limit is " +
               std::to_string(limits::kSampleBytes / sizeof(int64_t)));
  SampleShape shape{static_cast<uint32_t>(ids), 1, 1};
  shape.id_bytes = input.header.element_bytes;
  shape.has_signed_ids = input.header.kind == 'i';
  return shape;
}

Result<SampleShape> input_shape(const NpyArray& input, const std::string& axes) {
  const NpyHeader& header = input.header;
  if (is_float_input(header)) {
    auto shape = float_input_shape(header, axes);
    return shape.is_ok() ? shape : about(input.name, shape.status());
  }
  const bool are_whole = header.is_integer() && header.element_bytes <= sizeof(int64_t);
  if (are_whole && header.dims.size() == 2) return shape_of_ids(input);
  const bool are_floats = header.kind == 'f' && header.element_bytes == sizeof(float);
  if (!are_floats || header.dims.size() != 2) {
    auto shape = npy_image_shape(header, axes);
    if (shape.is_ok() || shape.status().code() == Code::kUsage || header.kind == 'u')
      return shape.is_ok() ? shape : about(input.name, shape.status());
    return bad(input.name + " holds " + header.type_text() + " in the shape " +
               header.shape_text() +
               ", but the first of data.inputs is images of uint8, float16, float32 or float64 in "
               "(N, H, W), (N, C, H, W) or (N, H, W, C), volumes of floats in (N, C, D, H, W), "
               "rows of float32 in (N, columns), or of ids, whole numbers in (N, tokens); write it "
               "again, or name it later in data.inputs");
  }
  const uint64_t columns = header.dims[1];
  if (columns > limits::kSampleBytes / sizeof(float))
    return bad(input.name + " has rows of " + std::to_string(columns) + " values, the limit is " +
               std::to_string(limits::kSampleBytes / sizeof(float)));
  SampleShape shape{static_cast<uint32_t>(columns), 1, 1};
  shape.is_row = true;
  return shape;
}

FieldValues values_of(const NpyArray& array) {
  const NpyHeader& header = array.header;
  return {.name = array.name,
          .kind = header.kind,
          .element_bytes = header.element_bytes,
          .dims = {header.dims.begin() + 1, header.dims.end()},
          .first = array.content(),
          .stride_bytes = header.content_bytes / header.dims[0]};
}

ImageRun run_of_group(const OpenedGroup& arrays, const SampleShape& shape) {
  const NpyArray& input = arrays[0];
  ImageRun run;
  run.content = {input.content(), input.header.content_bytes};
  run.first = input.content();
  run.stride_bytes = shape.stored_bytes();
  run.samples = input.header.dims[0];
  run.path = input.path;
  run.array = input.name;
  run.is_inflated = input.is_inflated;
  run.files = arrays.size();
  for (size_t i = 1; i < arrays.size(); ++i) run.fields.push_back(values_of(arrays[i]));
  return run;
}

void add_paths(const OpenedGroup& arrays, std::vector<std::string>& paths) {
  for (const NpyArray& array : arrays)
    if (std::find(paths.begin(), paths.end(), array.path) == paths.end())
      paths.push_back(array.path);
}

// Fills in everything but the rule of the label.
Result<ImageFiles> named_files(const Chosen& chosen, const NamedArraysRequest& request) {
  ImageFiles files;
  files.format = request.format;
  const std::vector<WantedArray> wanted = wanted_arrays(request.columns);
  for (const std::vector<size_t>& group : chosen.groups.groups) {
    LOCKSTEP_ASSIGN_OR_RETURN(OpenedGroup arrays, open_group(chosen, group, request));
    LOCKSTEP_ASSIGN_OR_RETURN(const SampleShape shape, input_shape(arrays[0], request.axes));
    if (files.runs.empty()) files.shape = shape;
    if (!(files.shape == shape))
      return bad(arrays[0].name + " has samples of another shape than " + files.runs[0].path +
                 "; they do not belong together");
    ImageRun run = run_of_group(arrays, shape);
    run.first_file = files.files.size();
    files.runs.push_back(std::move(run));
    add_paths(arrays, files.paths);
    for (NpyArray& array : arrays) files.files.push_back(std::move(array.file));
  }
  for (size_t w = 1; w < wanted.size(); ++w)
    files.fields.push_back(
        {.name = wanted[w].name.empty() ? "label" : wanted[w].name, .role = wanted[w].role});
  return files;
}

// If the job names no target, the array of labels is the label, whatever it holds.
std::optional<LabelRule> rule_without_targets(const ImageFiles& files, const ColumnNames& columns) {
  if (!columns.targets.empty()) return std::nullopt;
  for (size_t f = 0; f < files.fields.size(); ++f)
    if (files.fields[f].role == FieldRole::kTarget) return LabelRule{f};
  return std::nullopt;
}

// The rule that the training data beside evaluation data give; empty if there are none.
Result<std::optional<LabelRule>> rule_of_training(ListArraysFn list, const Chosen& chosen,
                                                  const NamedArraysRequest& request) {
  if (request.split == Split::kTrain || chosen.groups.serves_both)
    return std::optional<LabelRule>();
  const auto train = chosen_at(list, request.path, request.columns, Split::kTrain);
  if (!train.is_ok()) return std::optional<LabelRule>();
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageFiles files, named_files(*train, request));
  return std::optional<LabelRule>(LabelRule{label_field(files)});
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_named_arrays(ListArraysFn list,
                                                   const NamedArraysRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Chosen chosen,
                            chosen_at(list, request.path, request.columns, request.split));
  LOCKSTEP_ASSIGN_OR_RETURN(ImageFiles files, named_files(chosen, request));
  files.label_rule = rule_without_targets(files, request.columns);
  const bool are_numbers = request.columns.are_numbers && !request.columns.targets.empty();
  if (are_numbers) files.label_rule = LabelRule{};  // also where all could be classes
  if (!files.label_rule) {
    LOCKSTEP_ASSIGN_OR_RETURN(files.label_rule, rule_of_training(list, chosen, request));
  }
  files.has_label_alone = request.columns.targets.empty() && files.fields.size() == 1;
  return make_image_dataset(std::move(files), request.cache_dir, request.progress);
}

NamedSplits splits_of_named(ListArraysFn list, const std::string& path,
                            const ColumnNames& columns) {
  NamedSplits splits;
  const auto there = arrays_at(list, path, Split::kTrain);
  if (!there.is_ok()) return splits;
  splits.has_any = has_any_name(there->names(), wanted_arrays(columns));
  const auto train = chosen_at(list, path, columns, Split::kTrain);
  splits.serves_both = train.is_ok() && train->groups.serves_both;
  const auto eval = chosen_at(list, path, columns, Split::kEval);
  // Ambiguous arrays count as present; opening them reports the ambiguity.
  splits.has_eval =
      eval.is_ok() ? !eval->groups.serves_both : eval.status().code() != Code::kNoInput;
  return splits;
}

}  // namespace lockstep::data
