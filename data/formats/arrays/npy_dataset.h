// A NumPy array of images and one of labels as a Dataset, read in place. Each array is a file
// (npy_pair.h) or a member of an archive (npz_pair.h).
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/formats/arrays/npy_array.h"
#include "data/formats/arrays/npy_header.h"

namespace lockstep::data {

// The most channels that an image has where nothing says which axis holds them: grey, grey and
// opacity, colours, or colours and opacity.
inline constexpr uint64_t kUsualChannels = 4;

// True if the last axis has the channels. `axes` and errors are as in npy_image_shape(). REQUIRES:
// four dimensions.
Result<bool> npy_channels_last(const NpyHeader& header, const std::string& axes);

// The shape of one image in a uint8 array of (N, H, W), (N, C, H, W) or (N, H, W, C). `axes`
// (npy_nchw, npy_nhwc) says which axis is the channel. Other values leave it to the shape: exactly
// one of the two axes must have 1 to 4 entries; else kUsage. All other errors are kBadData.
// Messages do not name the file.
Result<SampleShape> npy_image_shape(const NpyHeader& header, const std::string& axes);

// Arrays of floats as the first input of named_arrays.h:
//
//   (N, H, W)                       images of one channel
//   (N, C, H, W) or (N, H, W, C)    images; if neither axis has 1 to 4 entries, the first axis has
//                                   the channels, as in PyTorch
//   (N, C, D, H, W)                 volumes
//
// True for float16, float32 and float64 in one of these shapes.
bool is_float_input(const NpyHeader& header);

// `axes` as above. kUsage if both axes may have the channels, kBadData for samples that are too
// large. Messages do not name the array. REQUIRES: is_float_input(); there are samples, and they
// hold something.
Result<SampleShape> float_input_shape(const NpyHeader& header, const std::string& axes);

// Checks every label, and that images and labels belong together. Labels are whole numbers of any
// type, 0 to limits::kLabel. They have one dimension, or several, all but one with a single entry.
// `format` is what the data set reports as its format; `axes` is as above.
Result<std::unique_ptr<Dataset>> make_npy_dataset(NpyArray images, NpyArray labels,
                                                  const std::string& format,
                                                  const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
