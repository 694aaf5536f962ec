// Which of several named arrays hold the images and the labels of a split.
//
// The name of an array, or where there are arrays in files its own name in the file, says what it
// holds: "images", "image" or "x" is a word of it, or "labels", "label" or "y" (train_images,
// y_test). It or its file's says the split: with "val", "validation", "test" or "eval" it is for
// evaluation, of several the first in this order, else for training; a pair for training whose
// names do not say "train" serves either split where no other is there.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/split.h"

namespace lockstep::data {

struct NamedArray {
  std::string name;  // what says what it holds
  std::string file;  // what may say the split, too
};

struct ArrayPair {
  size_t images = 0;  // which of the arrays
  size_t labels = 0;
  bool serves_both = false;
};

// `where` and `ending` are for messages. kNoInput when one is not there, kBadData when it could be
// several.
Result<ArrayPair> choose_arrays(const std::vector<NamedArray>& arrays, Split split,
                                const std::string& where, const std::string& ending);

// Whether a name says that it holds images or labels.
bool names_a_pair(const std::string& name);

}  // namespace lockstep::data
