// The images in a directory and in the directories below it.
//
// Thread-safety: free functions and values.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/source_notes.h"

namespace lockstep::data {

inline constexpr int kTreeDepth = 16;  // of directories in each other; a link may lead in a circle

// Names in one directory, without hidden ones (hidden_names.h).
struct ImageNames {
  std::vector<std::string> directories;  // sorted
  std::vector<std::string> images;
  std::vector<std::string> others;
  std::vector<std::string> lost;  // links that lead nowhere
};

// kNoInput if the directory cannot be read.
Result<ImageNames> names_in(const std::string& directory);

// Adds the names that are no images. `below`: the directory, empty or with a slash at its end.
void leave_out(const ImageNames& names, const std::string& below, FilesLeftOut& left);

// Names are relative to the root of the tree.
struct ImageTree {
  std::vector<std::string> directories;
  std::vector<std::string> images;
  FilesLeftOut left_out;
};

// Adds directory `below` of `root`, and all below that; an empty `below` is the root. kBadData if
// directories lie deeper than kTreeDepth.
Status walk_images(const std::string& root, const std::string& below, int depth, ImageTree& found);

}  // namespace lockstep::data
