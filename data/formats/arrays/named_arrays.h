// Arrays by the names that a job gives them (data.inputs, data.targets, data.weight), as a data set
// read in place. All arrays have the samples in their first dimension.
//
// An array is the wanted one if it has the name, or the name with a word for the split before or
// after it: depth, train_depth, depth-val. That word, the name of the file (train.npz), or a
// directory for each split (split_directory.h) says the split; without any, the arrays serve
// either. Files that each hold all of the arrays are parts of one data set, in the order of their
// names.
//
// The first input is images of uint8, as npy_dataset.h has them, images or volumes of floats (also
// npy_dataset.h), rows of float32 in (N, columns), or rows of ids, whole numbers in (N, tokens).
// Without data.inputs, the first input is the array whose name says images, and without
// data.targets the label is the array whose name says labels (array_choice.h).
//
// Thread-safety: values and free functions; any thread and process.
#pragma once

#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/dataset/format_row.h"
#include "data/formats/arrays/listed_array.h"

namespace lockstep::data {

struct NamedArraysRequest {
  const std::string& path;
  Split split;
  const std::string& format;  // what the data set reports
  const std::string& axes;    // of images: npy_dataset.h
  const ColumnNames& columns;
  const std::string& cache_dir;
  const ProgressFn& progress;
};

// The training data at the path say which target is the label, also for evaluation. kNoInput if
// none of the arrays is there. kBadData if one of them is missing, or there twice; if they have
// different numbers of samples; or as npy_dataset.h and image_fields.h say.
Result<std::unique_ptr<Dataset>> open_named_arrays(ListArraysFn list,
                                                   const NamedArraysRequest& request);

NamedSplits splits_of_named(ListArraysFn list, const std::string& path, const ColumnNames& columns);

}  // namespace lockstep::data
