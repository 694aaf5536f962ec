// Images with masks: directories that belong together, and members of WebDataset samples.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/dataset/fields.h"
#include "data/formats/images/encoded_source.h"
#include "data/formats/shards/webdataset.h"
#include "data/open/format_row.h"

namespace lockstep::data {

// The directories that data.inputs and data.targets name (stem_directory.h); the first input is
// `images` where the job names none. kUsage if the job names no mask, or a weight. As
// find_folder_source().
Result<EncodedSource> find_masked_directories(const EncodedRequest& request);

// Tells whether the directory of the images says which images are for evaluation. Directories that
// the job does not name do not count.
NamedSplits masked_splits(const std::string& path, const ColumnNames& columns);

// What a job's keys say of the members of a WebDataset sample.
struct TarFields {
  ColumnNames columns;            // of the image and the label
  TarMasks masks;                 // of the images' index
  std::vector<FieldSpec> fields;  // empty: one input and one label
};

// A name that ends like an image is a mask; of the targets one other may be the label. kUsage if
// there are more of these, or a weight.
Result<TarFields> tar_fields(const ColumnNames& wanted);

}  // namespace lockstep::data
