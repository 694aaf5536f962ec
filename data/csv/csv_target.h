// A column that data.targets or data.weight names: classes as CsvLabels has them, or numbers. The
// values decide: a target holds classes as long as all of its values can be classes.
//
// ERRORS: as CsvTableReader.
//
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/csv/csv_labels.h"

namespace lockstep::data {

enum class CsvTargetKind {
  kEither,   // as the values are
  kClasses,  // as in the training data
  kNumbers,  // as in the training data
  kWeights,  // numbers from 0 on
};

class CsvTarget {
 public:
  // `classes`: as CsvLabels.
  CsvTarget(size_t column, CsvTargetKind kind, const std::vector<std::string>* classes)
      : column_(column), kind_(kind), labels_(classes), may_be_classes_(!is_of_numbers(kind)) {}

  size_t column() const { return column_; }
  Status add(std::string_view text, const std::string& place);

  bool may_be_classes() const { return may_be_classes_; }
  bool are_numbers() const { return are_numbers_; }
  CsvLabels& labels() { return labels_; }                       // REQUIRES: may_be_classes()
  std::vector<float> numbers() { return std::move(numbers_); }  // REQUIRES: are_numbers()

 private:
  static bool is_of_numbers(CsvTargetKind kind) {
    return kind == CsvTargetKind::kNumbers || kind == CsvTargetKind::kWeights;
  }
  Status add_number(std::string_view text, const std::string& place);

  size_t column_;
  CsvTargetKind kind_;
  CsvLabels labels_;
  std::vector<float> numbers_;
  bool may_be_classes_;
  bool are_numbers_ = true;
};

}  // namespace lockstep::data
