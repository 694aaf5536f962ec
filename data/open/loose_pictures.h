// Presents unsorted pictures, a file or all images below a directory, as a folder of images with
// one class. It links the pictures and copies none.
//
// Thread-safety: a free function; no other program writes into `into`.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct UnreadPicture {
  std::string path;  // as the user knows it
  std::string why;
};

struct LoosePictures {
  std::string folder;     // to open as image_folder
  std::string shown_for;  // the part of a picture's name in there that stands for `path`
  std::vector<UnreadPicture> unread;  // that are left out; empty without `looks`
};

// `path`: local. `into`: an empty directory for the links. With `looks`, decodes each picture, and
// leaves it out if it is missing or broken. Without, links a directory as a whole. kNoInput if
// nothing is there. kBadData, naming the first, if no picture is left.
Result<LoosePictures> link_pictures(const std::string& path, const std::string& into, bool looks);

}  // namespace lockstep::data
