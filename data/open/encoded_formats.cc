#include "data/open/encoded_formats.h"

#include <algorithm>
#include <utility>

#include "data/base/file_errors.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/arrow/arrow_images.h"
#include "data/formats/images/image_folder.h"
#include "data/formats/shards/mds.h"
#include "data/formats/shards/packed_shards.h"
#include "data/formats/shards/shards.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/shards/webdataset.h"
#include "data/open/masked_formats.h"

namespace lockstep::data {
namespace {

bool is_any_tar(const std::string& path) {
  return is_tar_file(path) || is_packed_tar(path);
}

EncodedSource source_of(const std::string& format, Shards shards, const ColumnNames& columns,
                        ReadShardFn read, const ProgressFn& progress,
                        std::shared_ptr<source::RemoteFiles> far) {
  EncodedSource source;
  source.columns = columns;
  source.far = far;
  shards.far = std::move(far);
  source.format = format;
  source.directory = shards.directory;
  source.shown_directory = shards.shown_directory();
  source.copied = shards.copied;
  source.names = shards.names;
  source.files = shards.names;
  for (const auto& [i, packed] : shards.packed) source.files.push_back(packed.file);
  source.look = [shards = std::move(shards), read = std::move(read), &progress](
                    uint32_t threads, DamagedFiles* damaged) {
    return look_at_shards(shards, read, threads, progress, damaged);
  };
  return source;
}

// Of shards of which some may be compressed as a whole.
Result<EncodedSource> whole_source_of(const std::string& format, Shards shards,
                                      const ReadShardFn& read, const EncodedRequest& request) {
  const ProgressFn& progress = request.progress;
  const ColumnNames& columns = request.columns;
  LOCKSTEP_RETURN_IF_ERROR(check_packed_are_here(shards, request.far.get()));
  EncodedSource source = source_of(format, shards, columns, read, progress, request.far);
  if (shards.packed.empty()) return source;
  source.inflate = [=, &progress, packed = std::move(shards)](
                       const std::string& cache_dir) -> Result<EncodedSource> {
    LOCKSTEP_ASSIGN_OR_RETURN(Shards plain, inflated_shards(packed, cache_dir, progress));
    return source_of(format, std::move(plain), columns, read, progress, nullptr);
  };
  return source;
}

// The images of WebDataset shards, or their masks of one ending.
Result<EncodedSource> tar_source(const Shards& shards, const TarFields& said, const TarMasks& masks,
                                 const EncodedRequest& request) {
  const auto read = [columns = said.columns, masks](size_t, std::span<const uint8_t> bytes,
                                                    SourceNotes& notes) {
    return samples_of_tar(bytes, columns, &notes, masks);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      EncodedSource source,
      whole_source_of("webdataset", shards, read,
                      {request.path, request.split, request.progress, request.far, said.columns}));
  if (said.fields.empty()) return source;
  source.variant = masks.taken + "\n" + (masks.has_label ? "label" : "");
  for (const std::string& ending : masks.endings) source.variant += "\n" + ending;
  return source;
}

EncodedSource arrow_source(const Shards& shards, const ColumnNames& columns,
                           const std::vector<std::string>& classes, const ProgressFn& progress) {
  const auto read = [columns](size_t, std::span<const uint8_t> bytes, SourceNotes& notes) {
    return samples_of_arrow(bytes, columns, &notes.columns);
  };
  // Data that are far away have their Arrow files here, whole: none is only a place.
  EncodedSource source = source_of("arrow_images", shards, columns, read, progress, nullptr);
  source.has_class_names = are_names(classes);
  source.look = [look = source.look, classes](uint32_t threads,
                                              DamagedFiles* damaged) -> Result<IndexContent> {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent content, look(threads, damaged));
    // Fewer names than labels are names of something else.
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

}  // namespace

Result<EncodedSource> find_folder_source(const EncodedRequest& request) {
  EncodedSource source;
  source.format = "image_folder";
  LOCKSTEP_ASSIGN_OR_RETURN(source.directory, find_image_folder(request.path, request.split));
  source.shown_directory = source.directory;
  source.has_class_names = true;
  source.far = request.far;
  source.look = [directory = source.directory, &progress = request.progress, at = source.far](
                    uint32_t threads, DamagedFiles* damaged) {
    return look_at_image_folder(directory, threads, progress, at.get(), damaged);
  };
  return source;
}

Result<EncodedSource> find_tar_source(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      Shards shards,
      find_shards(request.path, request.split, "*.tar or *.tar.gz", is_any_tar, ShardNames::kAny));
  LOCKSTEP_RETURN_IF_ERROR(find_packed(shards));
  LOCKSTEP_ASSIGN_OR_RETURN(const TarFields said, tar_fields(request.columns));
  LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource source, tar_source(shards, said, said.masks, request));
  source.fields = said.fields;
  for (const std::string& ending : said.masks.endings) {
    TarMasks of_ending = said.masks;
    of_ending.taken = ending;
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource mask, tar_source(shards, said, of_ending, request));
    source.masks.push_back(std::move(mask));
  }
  return source;
}

Result<EncodedSource> find_tfrecord_source(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Shards shards, find_shards(request.path, request.split, "TFRecords",
                                                       is_tfrecord_file, ShardNames::kAny));
  LOCKSTEP_RETURN_IF_ERROR(find_packed(shards));
  const auto read = [columns = request.columns](size_t, std::span<const uint8_t> bytes,
                                                SourceNotes& notes) {
    return samples_of_tfrecord(bytes, columns, &notes.columns);
  };
  return whole_source_of("tfrecord", std::move(shards), read, request);
}

Result<EncodedSource> find_mds_source(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(MdsSet set, find_mds(request.path, request.split));
  for (MdsShard& shard : set.said)
    if (const Status status = choose_mds_columns(shard, request.columns); !status.is_ok())
      return about(set.shards.directory + "/index.json", status);
  const auto read = [said = std::move(set.said)](size_t i, std::span<const uint8_t> bytes,
                                                 SourceNotes& notes) {
    notes.columns = {said[i].columns[said[i].image].name, said[i].columns[said[i].label].name};
    return samples_of_mds(said[i], bytes);
  };
  return whole_source_of("mds", std::move(set.shards), read, request);
}

bool mds_has_eval(const std::string& path) {
  const auto train = find_mds(path, Split::kTrain);
  const auto eval = find_mds(path, Split::kEval);
  if (!eval.is_ok()) return false;
  return !train.is_ok() || train->shards.directory != eval->shards.directory;
}

Result<EncodedSource> find_arrow_images(const EncodedRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(request.path, request.split));
  return arrow_source(shards, request.columns, request.progress);
}

}  // namespace lockstep::data
