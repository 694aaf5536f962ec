// The formats of encoded images: which files of a path belong to a split, and what looks at them.
//
// Thread-safety: free functions; any thread.
#pragma once

#include "comm/base/status.h"
#include "data/formats/images/encoded_source.h"
#include "data/open/format_row.h"

namespace lockstep::data {

// find() of the rows in formats.cc. `progress` of a request outlives the result. Errors as
// open_dataset().
Result<EncodedSource> find_folder_source(const EncodedRequest& request);
Result<EncodedSource> find_tar_source(const EncodedRequest& request);
Result<EncodedSource> find_tfrecord_source(const EncodedRequest& request);
Result<EncodedSource> find_mds_source(const EncodedRequest& request);
// Whether the path has samples for evaluation by itself, whatever its columns.
bool mds_has_eval(const std::string& path);
Result<EncodedSource> find_arrow_images(const EncodedRequest& request);

}  // namespace lockstep::data
