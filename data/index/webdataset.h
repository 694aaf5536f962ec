// Shards of the WebDataset library: tar archives in which the files of a sample follow each other
// and have one name up to its first dot.
//
//   train-000.tar: n01/a.jpg n01/a.cls n01/b.png n01/b.json ...
//
// The image is what ends with jpg, jpeg or png; the label is the number in cls, or `label` or `cls`
// in json. Other files are left out. Shards are read in the order of their names' bytes; those with
// val, test or eval in their name are for evaluation (list_files.h).
//
// Source: https://github.com/webdataset/webdataset, README, "The WebDataset Format".
// Thread-safety: free functions; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/index/extent_index.h"

namespace lockstep::data {

struct WebdatasetShards {
  std::string directory;
  std::vector<std::string> names;  // within it, sorted
};

// A directory with *.tar, or one such file, which serves either split. kNoInput where there is none
// of this split.
Result<WebdatasetShards> find_webdataset(const std::string& path, Split split);

// Everything but the fingerprint, several shards at a time. Errors as open_dataset(), naming shard
// and sample.
Result<IndexContent> look_at_webdataset(const WebdatasetShards& shards, uint32_t threads,
                                        const ProgressFn& progress);

// The samples of one shard; their `file` is left as it is. kBadData going on after its name.
Result<std::vector<Extent>> samples_of_shard(std::span<const uint8_t> archive);

}  // namespace lockstep::data
