// Encoded images as a Dataset: JPEG and PNG, as files of their own or within larger ones.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/index/extent_index.h"

namespace lockstep::data {

struct EncodedSource {
  std::string format;
  std::string directory;           // what names in the index are relative to
  std::vector<std::string> names;  // of its files, where not all in it are of the data set
  bool has_class_names = false;
  // What it takes to look at all samples: everything but the fingerprint.
  std::function<Result<IndexContent>(uint32_t threads)> look;
};

// Of this path and split. `progress` outlives it. Errors as open_dataset().
Result<EncodedSource> find_encoded_source(const std::string& path, const std::string& format,
                                          Split split, const ProgressFn& progress);

// The index in `cache_dir`, which is made where there is none that holds.
Result<ExtentIndex> open_index(const EncodedSource& source, const std::string& cache_dir,
                               const ProgressFn& progress);

// By open_index(). Errors as
// open_dataset(); kUsage where images differ in size and there is no frame.
Result<std::unique_ptr<Dataset>> open_encoded_dataset(const EncodedSource& source,
                                                      const ImageFrame& frame,
                                                      const std::string& cache_dir,
                                                      const ProgressFn& progress);

}  // namespace lockstep::data
