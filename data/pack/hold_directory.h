// One lockstep data pack at a time has a directory.
//
// Thread-safety: a free function.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/read_at.h"

namespace lockstep::data {

// Holds it as long as the result lives. kUsage where it cannot be opened, or another process has
// it.
Result<std::unique_ptr<Descriptor>> hold_directory(const std::string& directory);

}  // namespace lockstep::data
