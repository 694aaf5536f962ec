// Which arrays of NumPy's archives (*.npz, numpy.savez) hold the images and the labels of a split,
// and the data set that they are.
//
// Names say it (array_choice.h), those of the arrays or of the archives: an archive with x_train,
// y_train, x_test and y_test; or train.npz and test.npz with images and labels in each. What is
// stored as it is is read where it lies; what was compressed (numpy.savez_compressed) is inflated
// once into the cache directory.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/files/zip_entries.h"

namespace lockstep::data {

struct NpzArray {
  std::string path;  // of the archive
  std::string name;  // of the array: "x_train"
  ZipEntry entry;
};

struct NpzPair {
  NpzArray images;
  NpzArray labels;
  bool serves_both = false;
};

// Of a directory with *.npz, or of one such file. kNoInput where an array is not there, kBadData
// when it could be several, or an archive is damaged.
Result<NpzPair> find_npz_pair(const std::string& path, Split split);

// Whether it is one, or a directory with such.
bool is_npz(const std::string& path);

// `axes`: which axis the channels are (npy_dataset.h).
Result<std::unique_ptr<Dataset>> open_npz_dataset(const NpzPair& pair, const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
