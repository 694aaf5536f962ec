// Shards as a source of encoded images, for the rows of the formats of shards.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/format_row.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/shards/shards.h"

namespace lockstep::data {

// Shards that are not compressed as a whole. `progress` outlives the source. `far`: has the
// content of shards that are only places; null if none is.
EncodedSource plain_shard_source(const std::string& format, Shards shards,
                                 const ColumnNames& columns, ReadShardFn read,
                                 const ProgressFn& progress,
                                 std::shared_ptr<source::RemoteFiles> far);

// Shards of which some may be compressed as a whole. Errors as open_dataset(). `request.progress`
// outlives the source.
Result<EncodedSource> shard_source(const std::string& format, Shards shards,
                                   const ReadShardFn& read, const EncodedRequest& request);

}  // namespace lockstep::data
