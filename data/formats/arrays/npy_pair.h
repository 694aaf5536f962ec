// Which two NumPy files of a directory hold the images and the labels of a split.
// Their names say it (array_choice.h): train_images.npy, labels-val.npy.
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

// kNoInput when one is not there, kBadData when it could be several.
Result<NpyPair> find_npy_pair(const std::string& directory, Split split);

// Whether `directory` has a file by such a name at all.
bool has_npy_pair_names(const std::string& directory);

}  // namespace lockstep::data
