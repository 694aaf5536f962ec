// MosaicML Streaming's shards (MDS) with an image and a label in each sample: index.json, and the
// shards that it names.
//
//   shard: samples n (4) | where sample 0 to n begins in the file (4 each)
//          | the writer's own JSON | samples
//   sample: sizes (4 each) of its columns that have none in the index | its columns
//
// Numbers are little-endian, columns in the order of the index. choose_mds_columns() says which are
// image and label.
//
// A shard may exist only compressed as a whole, by zstd or gzip (packed_shards.h).
//
// Source: https://docs.mosaicml.com/projects/streaming, "Dataset Format", "MDS".
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"
#include "data/formats/images/extent_index.h"
#include "data/formats/shards/mds_index.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// True if index.json of this directory, or of its training split, is an MDS index.
bool is_mds_directory(const std::string& path);

struct MdsSet {
  Shards shards;
  std::vector<MdsShard> said;  // by shard
};

// `path`: a directory with index.json, which serves either split, or a directory with one for each
// split (split_directory.h). Errors as open_dataset().
Result<MdsSet> find_mds(const std::string& path, Split split);

// The samples of a shard whose columns are chosen; it does not set their `file`. kBadData: the
// message goes on after the shard's name.
Result<std::vector<Extent>> samples_of_mds(const MdsShard& said, std::span<const uint8_t> bytes);

}  // namespace lockstep::data
