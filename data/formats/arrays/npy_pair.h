// Chooses which two NumPy files of a directory hold the images and the labels of a split. Their
// names say it (array_choice.h): train_images.npy, labels-val.npy.
//
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/split.h"

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

}  // namespace lockstep::data
