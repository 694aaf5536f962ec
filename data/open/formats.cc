#include "data/open/formats.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "comm/base/check.h"
#include "comm/run/job/data_formats.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/images/stem_directory.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tokens/token_files.h"
#include "data/open/encoded_formats.h"
#include "data/open/evidence.h"
#include "data/open/format_probes.h"
#include "data/open/masked_formats.h"
#include "data/open/stored_formats.h"

namespace lockstep::data {
namespace {

constexpr RecordSums kTfRecordSums{walk_tfrecord, has_good_checksum};

bool is_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// Encoded images, by the row's find().
template <auto find>
bool encoded_has_eval(const std::string& path) {
  const auto train = find({path, Split::kTrain, {}, nullptr, {}});
  const auto eval = find({path, Split::kEval, {}, nullptr, {}});
  if (!eval.is_ok()) return false;
  return !train.is_ok() || train->directory != eval->directory || train->names != eval->names;
}

// Tokens, by the format's find().
template <auto find>
bool tokens_have_eval(const std::string& path) {
  return is_directory(path) && find(path, Split::kEval).is_ok();
}
Result<bool> tokens_serve_both(const std::string& path) {
  return !is_directory(path);
}

// What has samples for evaluation by themselves does not serve both.
template <bool (*has_eval)(const std::string&)>
Result<bool> unless(const std::string& path) {
  return !has_eval(path);
}
Result<bool> never(const std::string&) {
  return false;
}

using FolderStep = DirectoryStep;

// In the order of detection (DirectoryStep, FileStep).
constexpr DataFormat kFormats[] = {
    {.name = "idx",
     .in_directory = {{{FolderStep::kNames, probe::idx_in},
                       {FolderStep::kRemains, probe::idx_remains_in}}},
     .open = stored::open_idx,
     .has_eval = stored::idx_has_eval,
     .serves_both = stored::idx_serves_both,
     .sums = stored::idx_sums},
    {.name = "cifar10",  // its probes also find cifar100
     .in_directory = {{{FolderStep::kNames, probe::cifar_directly_in},
                       {FolderStep::kLast, probe::cifar_unpacked_in}}},
     .open = stored::open_cifar,
     .has_eval = stored::cifar10_has_eval,
     .serves_both = never},
    {.name = "cifar100",
     .open = stored::open_cifar,
     .has_eval = stored::cifar100_has_eval,
     .serves_both = never},
    {.name = "npy",
     .in_directory = {{{FolderStep::kNames, probe::npy_in}}},
     .of_file = {{{FileStep::kContent, probe::npy_at}}},
     .read_as = stored::arrays_at,
     .open = stored::open_npy,
     .has_eval = stored::npy_has_eval,
     .serves_both = stored::npy_serves_both,
     .named_splits = stored::npy_splits},
    {.name = "npy_nchw",
     .read_as = stored::arrays_at,
     .open = stored::open_npy,
     .has_eval = stored::npy_has_eval,
     .serves_both = stored::npy_serves_both,
     .named_splits = stored::npy_splits},
    {.name = "npy_nhwc",
     .read_as = stored::arrays_at,
     .open = stored::open_npy,
     .has_eval = stored::npy_has_eval,
     .serves_both = stored::npy_serves_both,
     .named_splits = stored::npy_splits},
    {.name = "npz",
     .in_directory = {{{FolderStep::kNames, probe::npz_in}}},
     .of_file = {{{FileStep::kEnding, probe::npz_at}}},
     .open = stored::open_npz,
     .has_eval = stored::npz_has_eval,
     .serves_both = stored::npz_serves_both,
     .named_splits = stored::npz_splits,
     .sums = stored::npz_sums},
    {.name = "safetensors",
     .in_directory = {{{FolderStep::kNames, probe::tensors_in}}},
     .of_file = {{{FileStep::kEnding, probe::tensors_at}}},
     .open = stored::open_tensors,
     .has_eval = stored::tensors_have_eval,
     .serves_both = stored::tensors_serve_both,
     .named_splits = stored::tensor_splits},
    {.name = "megatron",
     .in_directory = {{{FolderStep::kNames, probe::megatron_in}}},
     .of_file = {{{FileStep::kPair, probe::megatron_at}}},
     .has_eval = tokens_have_eval<find_megatron_bins>,
     .serves_both = tokens_serve_both},
    {.name = "mds",
     .in_directory = {{{FolderStep::kNames, probe::mds_in}}},
     .find = find_mds_source,
     .has_eval = mds_has_eval,
     .serves_both = unless<mds_has_eval>},
    {.name = "webdataset",
     .in_directory =
         {{{FolderStep::kShardsToTrainOn, probe::tar_in<Split::kTrain>, weight::of_tars},
           {FolderStep::kShardsToEvaluateOn, probe::tar_in<Split::kEval>, weight::of_tars},
           {FolderStep::kRemains, probe::packed_tar_in}}},
     .of_file = {{{FileStep::kEnding, probe::tar_at}}},
     .find = find_tar_source,
     .has_eval = encoded_has_eval<find_tar_source>,
     .serves_both = unless<encoded_has_eval<find_tar_source>>},
    {.name = "tfrecord",
     .in_directory = {{{FolderStep::kShardsToTrainOn, probe::tfrecord_in<Split::kTrain>,
                        weight::of_tfrecords},
                       {FolderStep::kShardsToEvaluateOn, probe::tfrecord_in<Split::kEval>,
                        weight::of_tfrecords}}},
     .of_file = {{{FileStep::kMixed, probe::tfrecord_at}}},
     .find = find_tfrecord_source,
     .has_eval = encoded_has_eval<find_tfrecord_source>,
     .serves_both = unless<encoded_has_eval<find_tfrecord_source>>,
     .record_sums = &kTfRecordSums},
    {.name = "arrow",  // its probes also find arrow_images and arrow_tokens
     .in_directory =
         {{{FolderStep::kShardsToTrainOn, probe::arrow_in<Split::kTrain>, weight::of_arrow},
           {FolderStep::kShardsToEvaluateOn, probe::arrow_in<Split::kEval>, weight::of_arrow}}},
     .of_file = {{{FileStep::kMixed, probe::arrow_name_at},
                  {FileStep::kContent, probe::arrow_bytes_at}}},
     .resolved = arrow_format_of,
     .open = stored::open_arrow,
     .has_eval = has_arrow_eval,
     .serves_both = unless<has_arrow_eval>},
    {.name = "arrow_images",
     .find = find_arrow_images,
     .has_eval = encoded_has_eval<find_arrow_images>,
     .serves_both = unless<encoded_has_eval<find_arrow_images>>},
    {.name = "arrow_tokens",
     .has_eval = tokens_have_eval<find_arrow_tokens>,
     .serves_both = tokens_serve_both},
    {.name = "tokens",
     .in_directory = {{{FolderStep::kLoose, probe::tokens_in, weight::of_tokens},
                       {FolderStep::kRemains, probe::any_array_in}}},
     .of_file = {{{FileStep::kEnding, probe::bin_at},
                  {FileStep::kContent, probe::token_header_at}}},
     .has_eval = tokens_have_eval<find_token_bins>,
     .serves_both = tokens_serve_both},
    {.name = "tokens_u32",
     .has_eval = tokens_have_eval<find_bare_bins>,
     .serves_both = tokens_serve_both},
    {.name = "text",
     .in_directory = {{{FolderStep::kLast, probe::text_in, weight::of_text}}},
     .of_file = {{{FileStep::kEnding, probe::text_at}}},
     .has_eval = tokens_have_eval<find_text_files>,
     .serves_both = tokens_serve_both},
    {.name = "image_folder",
     .in_directory = {{{FolderStep::kLast, probe::image_folder_in, weight::of_images}}},
     .find = find_folder_source,
     .has_eval = encoded_has_eval<find_folder_source>,
     .serves_both = unless<encoded_has_eval<find_folder_source>>},
    // Found by the probe of image_folder where a job names fields.
    {.name = "image_mask",
     .find = find_masked_directories,
     .has_eval = has_stem_splits,
     .serves_both = unless<has_stem_splits>,
     .named_splits = masked_splits},
    {.name = "",  // Parquet, which nothing reads in place: detect_format() says what to do
     .in_directory = {{{FolderStep::kLast, probe::parquet_in, weight::of_parquet}}},
     .of_file = {{{FileStep::kMixed, probe::parquet_at}}}},
    {.name = "csv",
     .in_directory = {{{FolderStep::kLast, probe::csv_in, weight::of_tables}}},
     .of_file = {{{FileStep::kContent, probe::csv_at}}},
     .open = stored::open_csv,
     .has_eval = has_csv_eval,
     .serves_both = unless<has_csv_eval>},
};

}  // namespace

std::span<const DataFormat> data_formats() {
  return kFormats;
}

const DataFormat* find_data_format(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const DataFormat& format) { return !name.empty() && format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

Status check_columns(const ColumnNames& columns, const std::string& path,
                     const std::string& format) {
  const auto refused = [&](const std::string& key, const std::string& value,
                           const std::string& why) {
    return Status(Code::kUsage, key + " is " + value + ", but " + path + " is of format " + format +
                                    ", " + why + "; leave " + key + " out");
  };
  const FormatColumns has = named_format(format)->columns;
  const FormatFields fields = fields_of_format(format);
  if (fields == FormatFields::kNone) {
    const std::string has_none = "whose samples have one input and one label";
    if (!columns.inputs.empty()) return refused("data.inputs", columns.inputs.front(), has_none);
    if (!columns.targets.empty()) return refused("data.targets", columns.targets.front(), has_none);
    if (!columns.weight.empty()) return refused("data.weight", columns.weight, has_none);
  }
  if (!columns.label.empty() && (has == FormatColumns::kNone || has == FormatColumns::kInput))
    return refused(
        "data.label", columns.label,
        has == FormatColumns::kNone ? "which has no such columns" : "whose tokens have no label");
  if (!columns.input.empty() && (has == FormatColumns::kNone || has == FormatColumns::kLabel))
    return refused("data.input", columns.input, "which has no such columns");
  return Status::ok();
}

const DataFormat& format_at(const std::string& path, std::string_view format) {
  const DataFormat* row = find_data_format(format);
  LOCKSTEP_CHECK(row != nullptr, "the format is known");
  return row->read_as == nullptr ? *row : *find_data_format(row->read_as(path));
}

}  // namespace lockstep::data
