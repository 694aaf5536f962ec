// The formats of encoded images: which files of a path belong to a split, and what looks at them.
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

// The encoded images of a path and split, which may be in the view of `far`. These functions are
// find() of the rows in formats.cc. `progress` outlives the results. Errors as open_dataset().
Result<EncodedSource> find_folder_source(const std::string& path, Split split,
                                         const ProgressFn& progress,
                                         std::shared_ptr<source::RemoteFiles> far);
Result<EncodedSource> find_tar_source(const std::string& path, Split split,
                                      const ProgressFn& progress,
                                      std::shared_ptr<source::RemoteFiles> far);
Result<EncodedSource> find_tfrecord_source(const std::string& path, Split split,
                                           const ProgressFn& progress,
                                           std::shared_ptr<source::RemoteFiles> far);
Result<EncodedSource> find_mds_source(const std::string& path, Split split,
                                      const ProgressFn& progress,
                                      std::shared_ptr<source::RemoteFiles> far);
Result<EncodedSource> find_arrow_images(const std::string& path, Split split,
                                        const ProgressFn& progress,
                                        std::shared_ptr<source::RemoteFiles> far);

}  // namespace lockstep::data
