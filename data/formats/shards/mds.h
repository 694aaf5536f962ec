// MosaicML Streaming's shards (MDS) with an image and a label in each sample: index.json, and the
// shards that it names.
//
//   shard: samples n (4) | where sample 0 to n begins in the file (4 each) | the writer's own JSON
//   |
//          samples
//   sample: sizes (4 each) of its columns that have none in the index | its columns
//
// numbers little-endian, columns in the order of the index. The image is the only column of
// encoding jpeg or png, or else of bytes; the label the column of whole numbers called label, cls,
// class or target, else the only one.
//
// A shard may be there only compressed as a whole, by zstd or gzip (packed_shards.h).
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

// Whether index.json of this directory, or of its training split, is one of MDS.
bool is_mds_directory(const std::string& path);

struct MdsSet {
  Shards shards;
  std::vector<MdsShard> said;  // by shard
};

// Of a directory with index.json, which serves either split, or with one for each
// (split_directory.h). Errors as open_dataset().
Result<MdsSet> find_mds(const std::string& path, Split split);

// The samples of a shard; their `file` is left as it is. kBadData going on after its name.
Result<std::vector<Extent>> samples_of_mds(const MdsShard& said, std::span<const uint8_t> bytes);

}  // namespace lockstep::data
