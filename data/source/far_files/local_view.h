// A directory on this machine that stands for a source. Its files have the names and sizes of the
// objects, so that Lockstep finds and lists formats as it does for local data. Files that are read
// as a whole have their content. Images and shards are placeholders (sparse files), whose readers
// ask the source.
//
//   DIRECTORY/      the files; their times stand for versions, so that an index of another version
//                   does not fit
//   DIRECTORY.lock  one process at a time updates the view
//   DIRECTORY.part/ files on their way
//
// INVARIANTS
//  V1 It writes only to DIRECTORY and the two paths beside it, whatever the names of objects.
//  V2 A file is replaced by rename: processes that have it open or mapped keep the old one.
//  V3 Several processes bring the view to the same state, one after another.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/source/base/object_names.h"
#include "data/source/base/object_store.h"
#include "data/source/cache/object_cache.h"

namespace lockstep::source {

// The time of the last change of an object's file. It depends on the version only.
int64_t time_of_version(const std::string& version);

using SourceProgressFn =
    std::function<void(const std::string& what, uint64_t done_bytes, uint64_t total_bytes)>;

// REQUIRES: check_names(objects) is ok, and `fetching` is fetching_of(objects). kConfig if the disk
// has no room for the files that are fetched whole; kInternal if it cannot be written; errors of
// reading.
Status update_view(const std::string& directory, const std::vector<ObjectInfo>& objects,
                   const std::vector<Fetching>& fetching, ObjectCache& cache, uint32_t requests,
                   const SourceProgressFn& progress);

}  // namespace lockstep::source
