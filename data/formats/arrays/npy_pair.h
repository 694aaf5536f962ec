// Chooses which two NumPy files of a directory hold the images and the labels of a split. Their
// names say it (array_choice.h): train_images.npy, labels-val.npy.
//
// Thread-safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"
#include "data/formats/arrays/listed_array.h"

namespace lockstep::data {

struct NpyPair {
  std::string images;  // paths
  std::string labels;
  bool serves_both = false;
};

// kNoInput if images or labels are missing, kBadData if several files would do.
Result<NpyPair> find_npy_pair(const std::string& directory, Split split);

// True if `directory` has any file with such a name.
bool has_npy_pair_names(const std::string& directory);

// The files of a directory by their names without the ending. A path of a file has none.
Result<std::vector<ListedArray>> list_npy_arrays(const std::string& path);

}  // namespace lockstep::data
