// Files of a slow mount: a network file system whose files are worth keeping near.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <memory>
#include <string>

#include "data/source/object_store.h"

namespace lockstep::source {

// `path` of a directory or a file. Links are followed; hidden files are left out.
std::unique_ptr<ObjectStore> make_mount_store(const std::string& path);

}  // namespace lockstep::source
