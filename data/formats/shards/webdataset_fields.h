// Reads from a job's keys the use of each member of a WebDataset sample.
//
// Thread-safety: a pure function.
#pragma once

#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/dataset/fields.h"
#include "data/formats/shards/webdataset.h"

namespace lockstep::data {

struct TarFields {
  ColumnNames columns;            // of the image and the label
  TarMasks masks;                 // of the images' index
  std::vector<FieldSpec> fields;  // empty: one input and one label
};

// A name that ends like an image is a mask; of the targets one other may be the label. kUsage if
// there are more of these, or a weight.
Result<TarFields> tar_fields(const ColumnNames& wanted);

}  // namespace lockstep::data
