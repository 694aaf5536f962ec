// A directory of classes: every directory in it is a class, and every JPEG or PNG image below a
// class is a sample of the class.
//
//   DIR/tench/a.jpg, DIR/tench/more/b.png, DIR/goldfish/c.jpg
//
// Classes are numbered in the order of their names' bytes, as torchvision's ImageFolder does.
// Samples of a class are ordered by the bytes of their paths. Lockstep leaves out hidden
// files and directories (hidden_names.h), and files that do not end like an image. A class may be
// empty, so that others keep their numbers.
//
// DIR may hold a directory for each split instead (split_directory.h), with the classes below it.
// doubt_of_classes() doubts directories that are neither splits nor classes.
//
// Thread-safety: free functions and values.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/formats/images/extent_index.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// True if a directory below `path`, or below its `train`, has an image.
bool is_image_folder(const std::string& path);

// The directory that holds the classes of this split. kNoInput if there is none for evaluation.
Result<std::string> find_image_folder(const std::string& path, Split split);

// Says why the directories may be no classes: all are called like splits, there is one only, or one
// only has images. A sentence that names the directory and says what to do; empty: no doubt. `path`
// as above.
std::string doubt_of_classes(const std::string& path);

// Looks at the images with `threads` threads; returns everything but the fingerprint. Errors as
// open_dataset(), naming the file. `far` has the content of the files; null means they are local.
// `damaged`: EncodedSource::look.
Result<IndexContent> look_at_image_folder(const std::string& directory, uint32_t threads,
                                          const ProgressFn& progress, source::RemoteFiles* far,
                                          DamagedFiles& damaged);

}  // namespace lockstep::data
