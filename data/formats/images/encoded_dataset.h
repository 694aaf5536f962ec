// Encoded images as a Dataset: JPEG and PNG, as single files or within shards.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/damaged_files.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/images/extent_index.h"
#include "data/image/frame.h"

namespace lockstep::data {

// The index in `cache_dir`. Makes the index if there is no valid one, or in any case.
enum class IndexUse { kValid, kMakeAnew };
Result<ExtentIndex> open_index(const EncodedSource& source, const std::string& cache_dir,
                               const ProgressFn& progress, IndexUse use = IndexUse::kValid);

// As open_index(), but leaves out damaged files, if there are sound ones, and tells `damaged` of
// them. Damaged files are numbered after the samples.
Result<ExtentIndex> open_sound_index(const EncodedSource& source, const std::string& cache_dir,
                                     const ProgressFn& progress, DamagedFiles& damaged);

// Uses open_index(). Errors as open_dataset(), naming all damaged files that it meets; kUsage if
// images differ in size and there is no frame.
Result<std::unique_ptr<Dataset>> open_encoded_dataset(const EncodedSource& source,
                                                      const ImageFrame& frame,
                                                      const std::string& cache_dir,
                                                      const ProgressFn& progress);

}  // namespace lockstep::data
