#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/arrow/file_layout.h"
#include "data/dataset/weigh_files.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/arrow/arrow_images.h"
#include "data/formats/format_rows.h"
#include "data/formats/images/encoded_format.h"
#include "data/formats/shards/shard_source.h"

namespace lockstep::data {
namespace {

template <Split split>
Result<std::string> arrow_in(const Listing& directory) {
  const bool is_it = find_shards(directory.path, split, "", has_arrow_ending).is_ok();
  return is_it ? arrow_format_of(directory.path, directory.columns) : std::string();
}
Result<std::string> arrow_name_at(const FileLook& file) {
  return has_arrow_ending(file.path) ? arrow_format_of(file.path, file.columns) : std::string();
}
Result<std::string> arrow_bytes_at(const FileLook& file) {
  return is_arrow_file(file.bytes) ? arrow_format_of(file.path, file.columns) : std::string();
}

Result<std::unique_ptr<Dataset>> open_arrow(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(request.path, request.split));
  const auto train = find_arrow_shards(request.path, Split::kTrain);
  const bool is_beside = request.split == Split::kEval && train.is_ok() &&
                         (train->directory != shards.directory || train->names != shards.names);
  return open_arrow_pixels(shards, is_beside ? &*train : nullptr, request.columns,
                           request.cache_dir, request.progress);
}

EncodedSource arrow_source(const Shards& shards, const ColumnNames& columns,
                           const std::vector<std::string>& classes, const ProgressFn& progress) {
  const auto read = [columns](size_t, std::span<const uint8_t> bytes, SourceNotes& notes) {
    return samples_of_arrow(bytes, columns, &notes.columns);
  };
  // Lockstep fetches Arrow files whole, so none of these is only a place.
  EncodedSource source =
      plain_shard_source("arrow_images", shards, columns, read, progress, nullptr);
  source.has_class_names = are_names(classes);
  source.look = [look = source.look, classes](uint32_t threads,
                                              DamagedFiles& damaged) -> Result<IndexContent> {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent content, look(threads, damaged));
    // If there are fewer names than labels, they name something else.
    if (classes.size() >= content.classes.size()) content.classes = classes;
    return content;
  };
  return source;
}

EncodedSource arrow_source(const Shards& shards, const ColumnNames& columns,
                           const ProgressFn& progress) {
  const std::vector<std::string> classes = arrow_class_names(shards, columns);
  EncodedSource source = arrow_source(shards, columns, classes, progress);
  source.inflate = [=, &progress](const std::string& cache_dir) -> Result<EncodedSource> {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shards plain,
                              inflated_arrow_shards(shards, columns, cache_dir, progress));
    return arrow_source(plain, columns, classes, progress);
  };
  return source;
}

Result<EncodedSource> find_arrow_images(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(request.path, request.split));
  return arrow_source(shards, request.columns, request.progress);
}

}  // namespace

// Its probes also find arrow_images and arrow_tokens.
constinit const DataFormat kArrowFormat{
    .name = "arrow",
    .in_directory = {{{DirectoryStep::kShardsToTrainOn, arrow_in<Split::kTrain>,
                       weight_of<has_arrow_ending>, /*has_tables_beside=*/true},
                      {DirectoryStep::kShardsToEvaluateOn, arrow_in<Split::kEval>,
                       weight_of<has_arrow_ending>, /*has_tables_beside=*/true}}},
    .of_file = {{{FileStep::kMixed, arrow_name_at}, {FileStep::kContent, arrow_bytes_at}}},
    .resolved = arrow_format_of,
    .open = open_arrow,
    .has_eval = has_arrow_eval,
    .serves_both = unless<has_arrow_eval>};

constinit const DataFormat kArrowImagesFormat{
    .name = "arrow_images",
    .find = find_arrow_images,
    .has_eval = encoded_has_eval<find_arrow_images>,
    .serves_both = unless<encoded_has_eval<find_arrow_images>>};

}  // namespace lockstep::data
