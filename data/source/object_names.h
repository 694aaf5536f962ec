// Names of objects become names of files below a directory of ours: what they may be, and what of
// an object has to be there for its format to be found.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// kBadData where a name is none that a file below a directory can have ("../x", "/x", "a//b", one
// too long), is there twice, or is a directory of another; naming it.
Status check_names(const std::vector<ObjectInfo>& objects);

// What lists the files of a directory for those who cannot (http_store.h). It may lie beside the
// data for good, and is no part of them anywhere: here, over HTTP, in a bucket.
inline constexpr char kManifestName[] = "manifest.txt";

// Whether that is the last component of `name`.
bool is_manifest(std::string_view name);

enum class Fetching {
  kRanges,     // an image or a shard: where samples lie is in an index, each is fetched by itself
  kHeadFirst,  // likewise, but its first bytes tell what it is
  kWhole,      // it is read all over
  kLeft,       // it is no part of the data
};

// Of all objects of a source, in their order. Beside images and shards only what describes them
// (MDS's index.json) is data; where there are none, all is but a manifest.
std::vector<Fetching> fetching_of(const std::vector<ObjectInfo>& objects);

}  // namespace lockstep::source
