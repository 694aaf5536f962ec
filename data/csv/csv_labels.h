// The labels in a column of a table of text: all whole numbers from 0, or all names. The distinct
// names, in the order of their bytes, are the classes.
//
// ERRORS: as CsvTableReader.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

class CsvLabels {
 public:
  // `classes`: for evaluation, the classes of the training data: their names, or none if labels are
  // numbers. Null: any classes.
  explicit CsvLabels(const std::vector<std::string>* classes);

  // One more label. `place`: where it stands, for messages.
  Status add(std::string_view text, const std::string& place);

  uint64_t size() const { return labels_.size(); }

  // The labels by row, and the classes if the labels are names.
  std::vector<uint32_t> take(std::vector<std::string>* classes);

 private:
  enum class Kind { kUnknown, kNumbers, kNames };

  Status add_name(std::string_view name, const std::string& place);

  Kind kind_ = Kind::kUnknown;
  bool are_classes_known_ = false;
  std::map<std::string, uint32_t, std::less<>> names_;  // numbered in the order of appearance
  std::vector<uint32_t> labels_;
};

// kBadData unless `name` can be the name of a class or a column.
Status check_csv_name(std::string_view name, const std::string& place);

}  // namespace lockstep::data
