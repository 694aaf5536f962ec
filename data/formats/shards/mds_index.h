// index.json of MosaicML Streaming's shards (MDS): the list of shards, and the columns of their
// samples. The parser treats every byte as hostile. It ignores the hashes in index.json, as
// Streaming does by default.
//
// Source: https://docs.mosaicml.com/projects/streaming, "Dataset Format", "MDS".
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"

namespace lockstep::data {

struct MdsColumn {
  std::string name;
  std::string encoding;
  uint64_t bytes = 0;  // 0: each sample states its own
};

struct MdsShard {
  std::string name;  // relative to the directory of index.json, within it
  uint64_t bytes = 0;
  uint64_t samples = 0;  // > 0
  // The shard compressed as a whole, if there is such a file: its name and bytes, and the
  // compression ("zstd", "gz", or one that Lockstep cannot inflate). Empty: there is no such file.
  std::string packed_name = {};
  uint64_t packed_bytes = 0;
  std::string compression = {};
  std::vector<MdsColumn> columns;
  size_t image = 0;  // which of the columns (choose_mds_columns())
  size_t label = 0;
};

bool is_mds_index(std::string_view json);

// kBadData: the message goes on after the file's name.
Result<std::vector<MdsShard>> parse_mds_index(std::string_view json);

// Sets `image` and `label`. The image is the only column of encoding jpeg or png, or else the only
// column of bytes. The label is a column of whole numbers by its name (column_names.h). kBadData:
// the message goes on after the name of the index.
Status choose_mds_columns(MdsShard& shard, const ColumnNames& wanted);

// Bytes of a whole number by its encoding, negative for signed numbers; 0 for other encodings.
int mds_integer_bytes(std::string_view encoding);

}  // namespace lockstep::data
