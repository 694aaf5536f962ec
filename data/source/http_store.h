// Files behind an HTTP or HTTPS server that knows byte ranges.
//
// A directory there has no listing that all servers agree on. One is what a file `manifest.txt` in
// it says: names, one a line, relative to it; '#' begins a comment line. Or `index.json` of MDS,
// which names its shards. Where there is neither, the address is that of one file. Sizes and
// versions are asked for, one HEAD request a file.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "data/source/cache_options.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// `url` as checked_url(). `stop` outlives it.
std::unique_ptr<ObjectStore> make_http_store(const std::string& url, const CacheOptions& options,
                                             const std::atomic<bool>& stop);

// The names in a manifest, as they stand there. kBadData where there are none.
Result<std::vector<std::string>> names_in_manifest(std::string_view text);
// The names of an MDS index and its shards. kBadData where it is none.
Result<std::vector<std::string>> names_in_mds_index(std::string_view text);

}  // namespace lockstep::source
