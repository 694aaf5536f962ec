// Thread-safety: a type.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::data {

// The opening thread calls it while something takes long (inflating, hashing). May be empty.
using ProgressFn =
    std::function<void(const std::string& what, uint64_t done_bytes, uint64_t total_bytes)>;

}  // namespace lockstep::data
