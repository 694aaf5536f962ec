// Shards of the WebDataset library: tar archives in which the files of a sample follow each other
// and have one name up to its first dot.
//
//   train-000.tar: n01/a.jpg n01/a.cls n01/b.png n01/b.json ...
//
// The image is what ends with jpg, jpeg or png; the label is the number in cls, or `label` or `cls`
// in json. Other files are left out. An archive may be gzipped (packed_shards.h).
//
// Source: https://github.com/webdataset/webdataset, README, "The WebDataset Format".
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/formats/images/extent_index.h"

namespace lockstep::data {

// *.tar; and archives *.tar.gz and *.tgz, which are compressed as a whole (packed_shards.h).
bool is_tar_file(const std::string& path);
bool is_packed_tar(const std::string& path);

// The samples of one shard (shards.h); their `file` is left as it is. kBadData going on after its
// name.
Result<std::vector<Extent>> samples_of_tar(std::span<const uint8_t> archive);

}  // namespace lockstep::data
