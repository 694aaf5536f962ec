// Files of a slow mount, such as a network file system, as objects.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <memory>
#include <string>

#include "data/source/base/object_store.h"

namespace lockstep::source {

// `path`: a directory or a file. Links are followed; hidden files are left out.
std::unique_ptr<ObjectStore> make_mount_store(const std::string& path);

}  // namespace lockstep::source
