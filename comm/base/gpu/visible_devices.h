// Reads CUDA_VISIBLE_DEVICES as CUDA does: numbers, UUIDs of GPUs ("GPU-8932f937-...") and of MIG
// slices ("MIG-...").
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct VisibleDevices {
  // The devices that the process sees if there is a GPU for each entry: the entries before the
  // first that names no GPU, each once. A process sees one MIG slice at most, and no GPU after it.
  std::vector<std::string> seen;
  bool has_twice = false;  // an entry comes again
};

VisibleDevices read_visible_devices(std::string_view value);

// Why the driver shows no GPU, as far as the value of CUDA_VISIBLE_DEVICES tells, and what to do.
// Null: the variable is not set.
std::string why_none_visible(const char* value);

}  // namespace lockstep
