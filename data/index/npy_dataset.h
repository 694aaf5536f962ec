// A pair of NumPy arrays, of images and of labels, as a Dataset, read where it lies.
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/index/dataset.h"
#include "data/index/npy_header.h"
#include "data/index/npy_pair.h"

namespace lockstep::data {

// Of an array of uint8, (N, H, W), (N, C, H, W) or (N, H, W, C). Which axis is the channel is said
// by `format` (npy_nchw, npy_nhwc), or (npy) seen where exactly one of the two has 1 to 4 entries;
// kUsage where it cannot be seen. Otherwise kBadData; messages do not name the file.
Result<SampleShape> npy_image_shape(const NpyHeader& header, const std::string& format);

// Opens and checks both files, every label, and that they belong together. Labels are whole numbers
// of any type, 0 to limits::kLabel, in one dimension.
Result<std::unique_ptr<Dataset>> open_npy_dataset(const NpyPair& pair, const std::string& format,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
