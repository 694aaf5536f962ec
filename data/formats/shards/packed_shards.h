// Shards that are compressed as a whole (shards.h), and the copies of them that are not, in a cache
// directory: in CACHE/shards.HASH, each as inflate_cache.h says. Beside it
// CACHE/shards.HASH.checked says of which sources and copies, by their times, sizes and numbers,
// checksums were compared: nothing but these is read again as long as that is so.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/formats/shards/shards.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// The name without .gz, and .tgz as .tar.
std::string name_inflated(const std::string& name);

// Fills in which of the shards are compressed, by their first bytes: these get the names that they
// have inflated, by which all are sorted again. Of one that lies there inflated, too, only that
// counts; kBadData naming two that are compressed and have one name inflated.
Status find_packed(Shards& shards);

// kBadData, a sentence, where some are compressed and some are only places of `far`: of those no
// copy could be told from another.
Status check_packed_are_here(const Shards& shards, const source::RemoteFiles* far);

// The same shards, none of them compressed: copies in a directory of `cache_dir`, under the names
// that they have inflated, and links to those that were not. The same data: fingerprints do not
// tell. kUsage without a cache, kBadData naming the file that is damaged, kInternal where the cache
// cannot be written.
Result<Shards> inflated_shards(const Shards& shards, const std::string& cache_dir,
                               const ProgressFn& progress);

// What directories of such copies begin with, in a cache directory.
inline constexpr char kShardCopies[] = "shards.";

}  // namespace lockstep::data
