// Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

// Calls look(f) once for each f = file_of(sample), until a call is not ok. REQUIRES: f < files.
template <typename FileOf, typename Look>
Status look_once(std::span<const uint64_t> samples, size_t files, const FileOf& file_of,
                 const Look& look) {
  if (samples.empty()) return Status::ok();
  if (files == 1) return look(size_t{0});
  std::vector<bool> seen(files);
  for (const uint64_t sample : samples) {
    const size_t file = file_of(sample);
    if (seen[file]) continue;
    seen[file] = true;
    LOCKSTEP_RETURN_IF_ERROR(look(file));
  }
  return Status::ok();
}

}  // namespace lockstep::data
