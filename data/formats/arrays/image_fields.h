// Makes the fields of stored images and rows (image_dataset.h) definite: types, sizes, and which
// target is the label.
//
// The values decide. Floats stay floats. The label is the first target of whole numbers with one
// value a sample, all of them 0 to limits::kLabel. All other whole numbers are uint8 or int64.
//
// Thread-safety: free functions.
#pragma once

#include <cstddef>
#include <optional>

#include "comm/base/status.h"
#include "data/formats/arrays/image_dataset.h"

namespace lockstep::data {

// Which of files.fields is the label by the values of `files`; empty: none.
std::optional<size_t> label_field(const ImageFiles& files);

// Sets shape.fields, and the labels of the runs. kBadData if files differ in the sizes or types of
// a field, or if a value is refused (field_values.h); arrays larger than kWholeContentBytes are
// checked when their samples are read. REQUIRES: every run has values for every field.
Status settle_fields(ImageFiles* files);

}  // namespace lockstep::data
