// Files on an HTTP or HTTPS server that supports byte ranges.
//
// HTTP has no listing of directories that all servers agree on. A directory has the files that its
// `manifest.txt` lists: relative names, one a line; '#' begins a comment line. Or it has the shards
// that `index.json` of MDS names. Without either, the address is one file. One HEAD request a file
// asks for its size and version.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "data/source/base/cache_options.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

// `url` as checked_url(). `stop` outlives it.
std::unique_ptr<ObjectStore> make_http_store(const std::string& url, const CacheOptions& options,
                                             const std::atomic<bool>& stop);

// The names in a manifest, as they stand there. kBadData if there are none.
Result<std::vector<std::string>> names_in_manifest(std::string_view text);
// The names of an MDS index and its shards. kBadData if it is no such index.
Result<std::vector<std::string>> names_in_mds_index(std::string_view text);

}  // namespace lockstep::source
