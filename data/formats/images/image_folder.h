// A directory of classes: every directory in it is one, and every JPEG or PNG image below that is
// one sample of it.
//
//   DIR/tench/a.jpg, DIR/tench/more/b.png, DIR/goldfish/c.jpg
//
// Classes are numbered in the order of their names' bytes, as torchvision's ImageFolder does; so
// are the samples of a class, by their paths. Names that begin with a dot are left out, and so is
// what does not end like an image. A class may be empty: then others keep their numbers.
//
// DIR may hold a directory for each split instead (split_directory.h), with the classes below it.
//
// Thread-safety: free functions and values.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/formats/images/extent_index.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// Whether `path` looks like one: a directory below it, or below its `train`, has an image.
bool is_image_folder(const std::string& path);

// The directory that holds the classes of this split. kNoInput where there is none for evaluation.
Result<std::string> find_image_folder(const std::string& path, Split split);

// Everything but the fingerprint, looked at with `threads` threads. Errors as open_dataset(),
// naming the file. `far`: what has the content of the files; null: they are here.
Result<IndexContent> look_at_image_folder(const std::string& directory, uint32_t threads,
                                          const ProgressFn& progress, source::RemoteFiles* far);

}  // namespace lockstep::data
