// Chooses which two files of a directory hold the images and the labels of a split.
// Thread-safety: free functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/base/split.h"

namespace lockstep::data {

struct IdxPair {
  std::string images;  // paths
  std::string labels;
  bool serves_both = false;  // the only pair of a directory without standard names
};

// Looks for the standard names first: train-images... and train-labels... for kTrain, t10k-... for
// kEval, as in train-images-idx3-ubyte or train-images.idx3-ubyte. Each name may end with .gz; the
// plain file wins. In a directory without standard names it looks at content: there must be exactly
// one file of images and one of labels. kNoInput if there is no such pair, kBadData if there are
// several.
Result<IdxPair> find_idx_pair(const std::string& directory, Split split);

// True if a file of images or labels is in the directory, by any name.
bool has_idx_file(const std::string& directory);

}  // namespace lockstep::data
