// index.json of MosaicML Streaming's shards (MDS): which shards there are, and the columns of their
// samples. Every byte is believed to be hostile. What it says of hashes is not looked at, as by
// Streaming unless it is told to.
//
// Source: https://docs.mosaicml.com/projects/streaming, "Dataset Format", "MDS".
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct MdsColumn {
  std::string name;
  std::string encoding;
  uint64_t bytes = 0;  // 0: of each sample its own
};

struct MdsShard {
  std::string name;  // relative to the directory of index.json, within it
  uint64_t bytes = 0;
  uint64_t samples = 0;  // > 0
  // The same compressed as a whole, where there is such a file: its name and bytes, and by what
  // ("zstd", "gz", or what cannot be inflated here). Empty: there is none.
  std::string packed_name = {};
  uint64_t packed_bytes = 0;
  std::string compression = {};
  std::vector<MdsColumn> columns;
  size_t image = 0;  // which of the columns
  size_t label = 0;
};

bool is_mds_index(std::string_view json);

// kBadData going on after the file's name.
Result<std::vector<MdsShard>> parse_mds_index(std::string_view json);

// Bytes of a whole number by its encoding, negative where it has a sign; 0 for other encodings.
int mds_integer_bytes(std::string_view encoding);

}  // namespace lockstep::data
