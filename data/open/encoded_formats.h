// The formats of encoded images: which files of a path are those of a split, and what looks at
// them.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/formats/images/encoded_source.h"
#include "data/source/view/remote_files.h"

namespace lockstep::data {

// Of this path and split, which may be in the view of `far`. REQUIRES: is_encoded_format(format).
// `progress` outlives it. Errors as open_dataset().
Result<EncodedSource> find_encoded_source(const std::string& path, const std::string& format,
                                          Split split, const ProgressFn& progress,
                                          std::shared_ptr<source::RemoteFiles> far = nullptr);

// Whether the path has samples for evaluation that are none for training.
bool has_encoded_eval(const std::string& path, const std::string& format);

// The format of a directory with shards, in it or in the directories of its splits; empty where it
// has none. Archives *.tar.gz and *.tgz are none for this: they may be what everything beside them
// was unpacked from.
std::string format_of_shards(const std::string& directory);

// Whether there are such archives, each for itself (a file) or in a directory like that.
bool is_packed_tar(const std::string& path);
bool has_packed_tars(const std::string& directory);

}  // namespace lockstep::data
