// Thread-safety: a free function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/open/find_place.h"
#include "data/pack/pack_source.h"

namespace lockstep::data {

// `place`: from find_place(). Calls `progress` only during this call. Errors as open_dataset().
Result<std::unique_ptr<PackSource>> open_pack_source(const DataPlace& place, Split split,
                                                     const std::string& cache_dir,
                                                     uint64_t shard_bytes,
                                                     const ProgressFn& progress);

}  // namespace lockstep::data
