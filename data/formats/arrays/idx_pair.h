// Which two files of a directory hold the images and the labels of a split.
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

// First by the standard names: train-images... and train-labels... for kTrain, t10k-... for kEval,
// as in train-images-idx3-ubyte or train-images.idx3-ubyte, each with .gz or without (the plain
// file wins). A directory without any of them is looked at by content: exactly one file of images
// and one of labels. kNoInput when there is no such pair, kBadData when there are several.
Result<IdxPair> find_idx_pair(const std::string& directory, Split split);

// Whether any of its files is one of images or labels, whatever it is called.
bool has_idx_file(const std::string& directory);

}  // namespace lockstep::data
