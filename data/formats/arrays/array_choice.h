// Chooses which of several named arrays hold the images and the labels of a split.
//
// The name of an array says what the array holds. In files it is the array's own name in the file.
// Images have the word "images", "image" or "x", labels "labels", "label" or "y" (train_images,
// y_test).
//
// The name of the array or of its file says the split. The words "val", "valid", "validation",
// "eval" and "test" mean evaluation; if several occur, the first in this order counts. Any other
// name means training. If no name says "train" or evaluation, the pair serves either split.
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
  std::string name;  // says what the array holds
  std::string file;  // may say the split, too
};

struct ArrayPair {
  size_t images = 0;  // which of the arrays
  size_t labels = 0;
  bool serves_both = false;
};

// `where` and `ending` are for messages. kNoInput if there are no images or no labels, kBadData if
// several arrays would do.
Result<ArrayPair> choose_arrays(const std::vector<NamedArray>& arrays, Split split,
                                const std::string& where, const std::string& ending);

// True if a name says that the array holds images, or labels, or either.
bool names_images(const std::string& name);
bool names_labels(const std::string& name);
bool names_a_pair(const std::string& name);

}  // namespace lockstep::data
