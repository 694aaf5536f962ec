// A pair of IDX files as a Dataset. The index is arithmetic: no memory per sample.
// Thread-safety: a free function; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/formats/arrays/idx_pair.h"

namespace lockstep::data {

// Opens, inflates where needed and checks both files, every label, and that they belong together.
Result<std::unique_ptr<Dataset>> open_idx_dataset(const IdxPair& pair, const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
