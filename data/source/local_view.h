// A directory on this machine that stands for a source: its files have the names and sizes of the
// objects, so that formats are found and listed as those of local data. Files that are read all
// over have their content, too; of images and shards only places are kept (sparse files), and
// whoever reads them asks the source.
//
//   DIRECTORY/      the files; times stand for versions, so that what another version was made an
//                   index of is told from what is there
//   DIRECTORY.lock  who brings it up to date
//   DIRECTORY.part/ files on their way
//
// INVARIANTS
//  V1 Nothing is written outside of DIRECTORY and the two beside it, whatever objects are called.
//  V2 A file is replaced by rename: whoever has it open or mapped keeps the old one.
//  V3 Several processes bring it to the same state, one after another.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/source/cached_reader.h"
#include "data/source/object_names.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// What an object's file has as time of its last change: it depends on the version only.
int64_t time_of_version(const std::string& version);

using SourceProgressFn =
    std::function<void(const std::string& what, uint64_t done_bytes, uint64_t total_bytes)>;

// REQUIRES: check_names(objects); `fetching` is of them. kConfig where the disk has no room for the
// files that are fetched whole; kInternal where it cannot be written; errors of reading.
Status update_view(const std::string& directory, const std::vector<ObjectInfo>& objects,
                   const std::vector<Fetching>& fetching, CachedReader& reader, uint32_t requests,
                   const SourceProgressFn& progress);

}  // namespace lockstep::source
