// Only one `lockstep data pack` at a time may write a directory.
//
// Thread-safety: a free function.
#pragma once

#include <memory>
#include <string>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"

namespace lockstep::data {

// Holds the directory as long as the result lives. kUsage if it cannot be opened, or if another
// process holds it.
Result<std::unique_ptr<Descriptor>> hold_directory(const std::string& directory);

}  // namespace lockstep::data
