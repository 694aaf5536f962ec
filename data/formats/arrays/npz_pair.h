// Chooses which arrays of NumPy archives (*.npz, numpy.savez) hold the images and the labels of a
// split, and opens them as a data set.
//
// The names of the arrays or of the archives say it (array_choice.h). Two examples: an archive with
// x_train, y_train, x_test and y_test; or train.npz and test.npz with images and labels in each.
// Lockstep reads stored arrays in place. It inflates compressed arrays (numpy.savez_compressed)
// once into the cache directory.
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/files/zip_entries.h"
#include "data/formats/arrays/listed_array.h"

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

// `path`: a directory with *.npz, or one such file. kNoInput if an array is missing, kBadData if
// several arrays would do or an archive is damaged.
Result<NpzPair> find_npz_pair(const std::string& path, Split split);

// All arrays of the archives.
Result<std::vector<ListedArray>> list_npz_arrays(const std::string& path);

// True if `path` is an archive, or a directory with archives.
bool is_npz(const std::string& path);

// `axes`: which axis the channels are (npy_dataset.h).
Result<std::unique_ptr<Dataset>> open_npz_dataset(const NpzPair& pair, const std::string& axes,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress);

}  // namespace lockstep::data
