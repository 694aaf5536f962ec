// A pair of NumPy arrays, of images and of labels, as a Dataset, read where it lies: each a file
// (npy_pair.h), or a member of an archive (npz_pair.h).
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrays/npy_header.h"
#include "data/formats/arrays/npy_pair.h"

namespace lockstep::data {

// Of an array of uint8, (N, H, W), (N, C, H, W) or (N, H, W, C). Which axis is the channel is said
// by `axes` (npy_nchw, npy_nhwc), or (others) seen where exactly one of the two has 1 to 4 entries;
// kUsage where it cannot be seen. Otherwise kBadData; messages do not name the file.
Result<SampleShape> npy_image_shape(const NpyHeader& header, const std::string& axes);

// An array and the file that it is in.
struct NpyArray {
  std::string path;  // of the file
  std::string name;  // for messages
  MappedFile file;
  NpyHeader header;
  uint64_t offset = 0;  // of its header in the mapped file
  bool is_inflated = false;

  const uint8_t* content() const { return file.bytes().data() + offset + header.header_bytes; }
};

// Reads the header of the array that is `bytes` of this file, from `offset` on, and checks that
// they fit. kBadData naming it.
Result<NpyArray> open_npy_array(NpyArray where, uint64_t bytes);

// Checks every label, and that they belong together. Labels are whole numbers of any type, 0 to
// limits::kLabel, in one dimension, or in several of which the others have one entry. `format` is
// what the data set says of itself, `axes` is as above.
Result<std::unique_ptr<Dataset>> make_npy_dataset(NpyArray images, NpyArray labels,
                                                  const std::string& format,
                                                  const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

// Of two files.
Result<std::unique_ptr<Dataset>> open_npy_dataset(const NpyPair& pair, const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
