// Finds the arrays that have the names that a job wants (named_arrays.h).
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/column_names.h"
#include "data/base/split.h"
#include "data/dataset/fields.h"
#include "data/formats/arrays/array_choice.h"

namespace lockstep::data {

// In the order of the job: inputs, targets, the weight.
struct WantedArray {
  std::string name;  // empty: the array whose name says images, or labels
  FieldRole role = FieldRole::kInput;
};
std::vector<WantedArray> wanted_arrays(const ColumnNames& columns);

struct ArrayGroups {
  std::vector<std::vector<size_t>> groups;  // of arrays of one file each, or one; by wanted array
  bool serves_both = false;
};

// `where`: for messages. `is_of_split`: all arrays are of the split, whatever they are called.
// kNoInput if none of the arrays is there, kBadData if some are, or if one is there twice.
Result<ArrayGroups> choose_by_name(const std::vector<NamedArray>& arrays,
                                   const std::vector<WantedArray>& wanted, Split split,
                                   const std::string& where, bool is_of_split);

// True if one of the arrays is wanted.
bool has_any_name(const std::vector<NamedArray>& arrays, const std::vector<WantedArray>& wanted);

}  // namespace lockstep::data
