#include "data/open/encoded_formats.h"

#include <algorithm>
#include <utility>

#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/arrow/arrow_images.h"
#include "data/formats/images/image_folder.h"
#include "data/formats/shards/mds.h"
#include "data/formats/shards/packed_shards.h"
#include "data/formats/shards/shards.h"
#include "data/formats/shards/tfrecord.h"
#include "data/formats/shards/webdataset.h"

namespace lockstep::data {
namespace {

bool is_any_tar(const std::string& path) {
  return is_tar_file(path) || is_packed_tar(path);
}

EncodedSource source_of(const std::string& format, Shards shards, ReadShardFn read,
                        const ProgressFn& progress, std::shared_ptr<source::RemoteFiles> far) {
  EncodedSource source;
  source.far = far;
  shards.far = std::move(far);
  source.format = format;
  source.directory = shards.directory;
  source.shown_directory = shards.shown_directory();
  source.copied = shards.copied;
  source.names = shards.names;
  source.look = [shards = std::move(shards), read = std::move(read), &progress](uint32_t threads) {
    return look_at_shards(shards, read, threads, progress);
  };
  return source;
}

// Of shards of which some may be compressed as a whole.
Result<EncodedSource> whole_source_of(const std::string& format, Shards shards,
                                      const ReadShardFn& read, const ProgressFn& progress,
                                      std::shared_ptr<source::RemoteFiles> far) {
  LOCKSTEP_RETURN_IF_ERROR(check_packed_are_here(shards, far.get()));
  EncodedSource source = source_of(format, shards, read, progress, std::move(far));
  if (shards.packed.empty()) return source;
  source.inflate = [=, &progress, packed = std::move(shards)](
                       const std::string& cache_dir) -> Result<EncodedSource> {
    LOCKSTEP_ASSIGN_OR_RETURN(Shards plain, inflated_shards(packed, cache_dir, progress));
    return source_of(format, std::move(plain), read, progress, nullptr);
  };
  return source;
}

EncodedSource arrow_source(const Shards& shards, const std::vector<std::string>& classes,
                           const ProgressFn& progress) {
  const auto read = [](size_t, std::span<const uint8_t> bytes) { return samples_of_arrow(bytes); };
  // Data that are far away have their Arrow files here, whole: none is only a place.
  EncodedSource source = source_of("arrow_images", shards, read, progress, nullptr);
  source.has_class_names = are_names(classes);
  source.look = [look = source.look, classes](uint32_t threads) -> Result<IndexContent> {
    LOCKSTEP_ASSIGN_OR_RETURN(IndexContent content, look(threads));
    // Fewer names than labels are names of something else.
    if (classes.size() >= content.classes.size()) content.classes = classes;
    return content;
  };
  return source;
}

EncodedSource arrow_source(const Shards& shards, const ProgressFn& progress) {
  const std::vector<std::string> classes = arrow_class_names(shards);
  EncodedSource source = arrow_source(shards, classes, progress);
  source.inflate = [=, &progress](const std::string& cache_dir) -> Result<EncodedSource> {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shards plain,
                              inflated_arrow_shards(shards, cache_dir, progress));
    return arrow_source(plain, classes, progress);
  };
  return source;
}

}  // namespace

Result<EncodedSource> find_folder_source(const std::string& path, Split split,
                                         const ProgressFn& progress,
                                         std::shared_ptr<source::RemoteFiles> far) {
  EncodedSource source;
  source.format = "image_folder";
  LOCKSTEP_ASSIGN_OR_RETURN(source.directory, find_image_folder(path, split));
  source.shown_directory = source.directory;
  source.has_class_names = true;
  source.far = std::move(far);
  source.look = [directory = source.directory, &progress, at = source.far](uint32_t threads) {
    return look_at_image_folder(directory, threads, progress, at.get());
  };
  return source;
}

Result<EncodedSource> find_tar_source(const std::string& path, Split split,
                                      const ProgressFn& progress,
                                      std::shared_ptr<source::RemoteFiles> far) {
  LOCKSTEP_ASSIGN_OR_RETURN(Shards shards,
                            find_shards(path, split, "*.tar or *.tar.gz", is_any_tar));
  LOCKSTEP_RETURN_IF_ERROR(find_packed(shards));
  const auto read = [](size_t, std::span<const uint8_t> bytes) { return samples_of_tar(bytes); };
  return whole_source_of("webdataset", std::move(shards), read, progress, std::move(far));
}

Result<EncodedSource> find_tfrecord_source(const std::string& path, Split split,
                                           const ProgressFn& progress,
                                           std::shared_ptr<source::RemoteFiles> far) {
  LOCKSTEP_ASSIGN_OR_RETURN(Shards shards, find_shards(path, split, "TFRecords", is_tfrecord_file));
  LOCKSTEP_RETURN_IF_ERROR(find_packed(shards));
  const auto read = [](size_t, std::span<const uint8_t> bytes) {
    return samples_of_tfrecord(bytes);
  };
  return whole_source_of("tfrecord", std::move(shards), read, progress, std::move(far));
}

Result<EncodedSource> find_mds_source(const std::string& path, Split split,
                                      const ProgressFn& progress,
                                      std::shared_ptr<source::RemoteFiles> far) {
  LOCKSTEP_ASSIGN_OR_RETURN(MdsSet set, find_mds(path, split));
  const auto read = [said = std::move(set.said)](size_t i, std::span<const uint8_t> bytes) {
    return samples_of_mds(said[i], bytes);
  };
  return whole_source_of("mds", std::move(set.shards), read, progress, std::move(far));
}

// NOLINTBEGIN(performance-unnecessary-value-param): one signature for all formats
Result<EncodedSource> find_arrow_images(const std::string& path, Split split,
                                        const ProgressFn& progress,
                                        std::shared_ptr<source::RemoteFiles>) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(path, split));
  return arrow_source(shards, progress);
}
// NOLINTEND(performance-unnecessary-value-param)

}  // namespace lockstep::data
