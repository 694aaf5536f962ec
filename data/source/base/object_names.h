// Names of objects become names of files below a directory of ours: which names are allowed, and
// how much of each object has to be fetched.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

// kBadData names a name that a file below a directory cannot have ("../x", "/x", "a//b", too long),
// that is there twice, or that is a directory of another one.
Status check_names(const std::vector<ObjectInfo>& objects);

// Lists the files of a directory for readers that cannot list it (http_store.h). It may lie beside
// the data for good. It is never part of the data, whether they are local, on an HTTP server
// or in a bucket.
inline constexpr char kManifestName[] = "manifest.txt";

// Whether kManifestName is the last component of `name`.
bool is_manifest(std::string_view name);

enum class Fetching {
  kRanges,     // an image or a shard: an index has the places of samples; each is fetched alone
  kHeadFirst,  // as kRanges, but the first bytes tell the format
  kWhole,      // all of the object
  kLeft,       // not part of the data
};

// For all objects of a source, in their order. Beside images and shards only their description is
// data (MDS's index.json). Without images and shards everything is data, except a manifest. Hidden
// objects (hidden_names.h) are never data, except one that is alone.
std::vector<Fetching> fetching_of(const std::vector<ObjectInfo>& objects);

}  // namespace lockstep::source
