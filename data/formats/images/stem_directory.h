// Directories that belong together: files of the same name without ending are one sample.
//
//   DIR/images/a.jpg   DIR/masks/a.png        image a and its mask
//   DIR/images/x/b.jpg DIR/masks/x/b.png      image x/b and its mask
//
// DIR may hold a directory for each split instead (split_directory.h), with these below it; or each
// of these holds the splits (images/train, masks/train).
//
// Thread-safety: free functions; any thread and process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/formats/images/extent_index.h"
#include "data/formats/images/look_at_image.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// "x/b" of "x/b.png"; a view of `name`.
std::string_view stem_of(std::string_view name);

// Where the files of directory `name` lie for this split. kNoInput, naming the directories that
// there are, if it is not there.
Result<std::string> find_stem_directory(const std::string& path, const std::string& name,
                                        Split split);

// Whether some files are for evaluation only.
bool has_stem_splits(const std::string& path);

// Looks at all images below `directory`, in the order of their stems' bytes; returns everything but
// the fingerprint. All have label 0. kBadData if two have one stem; other errors as
// look_at_image_folder(). `damaged`: EncodedSource::look.
Result<IndexContent> look_at_stems(const std::string& directory, PictureKind kind, uint32_t threads,
                                   const ProgressFn& progress, source::RemoteFiles* far,
                                   DamagedFiles& damaged);

}  // namespace lockstep::data
