// Shards compressed as a whole (shards.h), and their uncompressed copies in a cache directory. The
// copies lie in CACHE/shards.HASH, each in the form of inflate_cache.h. The file
// CACHE/shards.HASH.checked lists the sources and copies whose checksums were compared, with their
// times, sizes and numbers. As long as these stay the same, Lockstep does not read them again.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/shards/shards.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// The name without .gz; .tgz becomes .tar.
std::string name_inflated(const std::string& name);

// Finds the compressed shards by their first bytes and fills in `packed`. A compressed shard gets
// the name of its inflated form, and all shards are sorted again by their names. If the inflated
// form lies there too, only the inflated form counts. kBadData, naming both, if two compressed
// shards have the same inflated name.
Status find_packed(Shards& shards);

// kBadData, a sentence, if some shards are compressed and some are only places of `far`: their
// copies could not be told apart.
Status check_packed_are_here(const Shards& shards, const source::RemoteFiles* far);

// The same shards, all uncompressed: copies in a directory of `cache_dir` under the inflated names,
// and links to the shards that were not compressed. The data are the same, so fingerprints do not
// differ. kUsage without a cache; kBadData, naming the file, if a file is damaged; kInternal if the
// cache cannot be written.
Result<Shards> inflated_shards(const Shards& shards, const std::string& cache_dir,
                               const ProgressFn& progress);

// Names of directories of such copies begin with this, in a cache directory.
inline constexpr char kShardCopies[] = "shards.";

}  // namespace lockstep::data
