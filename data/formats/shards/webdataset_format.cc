#include <string>
#include <utility>
#include <vector>

#include "data/dataset/weigh_files.h"
#include "data/formats/format_rows.h"
#include "data/formats/images/encoded_format.h"
#include "data/formats/shards/packed_shards.h"
#include "data/formats/shards/shard_source.h"
#include "data/formats/shards/webdataset.h"
#include "data/formats/shards/webdataset_fields.h"

namespace lockstep::data {
namespace {

bool is_any_tar(const std::string& path) {
  return is_tar_file(path) || is_packed_tar(path);
}

template <Split split>
Result<std::string> tar_in(const Listing& directory) {
  return named_if(find_shards(directory.path, split, "", is_tar_file).is_ok(), "webdataset");
}

// Archives *.tar.gz and *.tgz come last, since the files beside them may be their unpacked content.
Result<std::string> packed_tar_in(const Listing& directory) {
  for (const Split split : {Split::kTrain, Split::kEval})
    if (find_shards(directory.path, split, "", is_packed_tar).is_ok())
      return std::string("webdataset");
  return std::string();
}

Result<std::string> tar_at(const FileLook& file) {
  return named_if(is_any_tar(file.path), "webdataset");
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
      shard_source("webdataset", shards, read,
                   {request.path, request.split, request.progress, request.far, said.columns}));
  if (said.fields.empty()) return source;
  source.variant = masks.taken + "\n" + (masks.has_label ? "label" : "");
  for (const std::string& ending : masks.endings) source.variant += "\n" + ending;
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

}  // namespace

constinit const DataFormat kWebdatasetFormat{
    .name = "webdataset",
    .in_directory = {{{DirectoryStep::kShardsToTrainOn, tar_in<Split::kTrain>,
                       weight_of<is_tar_file>, /*has_tables_beside=*/true},
                      {DirectoryStep::kShardsToEvaluateOn, tar_in<Split::kEval>,
                       weight_of<is_tar_file>, /*has_tables_beside=*/true},
                      {DirectoryStep::kRemains, packed_tar_in}}},
    .of_file = {{{FileStep::kEnding, tar_at}}},
    .find = find_tar_source,
    .has_eval = encoded_has_eval<find_tar_source>,
    .serves_both = unless<encoded_has_eval<find_tar_source>>};

}  // namespace lockstep::data
