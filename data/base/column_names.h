// Says which columns of a data set are its samples and its labels: what a job says, which names say
// it by themselves, and what was taken. A column is a column of a table, of Arrow or of MDS, a
// feature of TFRecord, or a file of a sample in WebDataset.
//
// No other column of whole numbers is a label: an id, a size or a number of a class's name would
// train something else without a word.
//
// Thread-safety: values and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/text/lower_case.h"

namespace lockstep::data {

// data.input and data.label of a job; empty: by the names below. And of fields
// (data/dataset/fields.h), as the job lists them.
struct ColumnNames {
  std::string input{};
  std::string label{};
  std::vector<std::string> inputs{};   // data.inputs; then `input` is empty
  std::vector<std::string> targets{};  // data.targets; then `label` is empty
  std::string weight{};                // data.weight
  bool are_numbers = false;            // targets are numbers, also where all could be classes
  // For a trained model: nothing is learnt, and the columns of labels, targets and weights may be
  // lacking.
  bool may_lack_answers = false;
  bool has_header = false;  // of tables whose first line is one, whatever it says

  bool has_fields() const { return !inputs.empty() || !targets.empty() || !weight.empty(); }
};

struct TakenColumns {
  std::string input{};  // empty: the format has no columns, or all but the label
  std::string label{};
  std::string note{};    // what was guessed, for people; empty: nothing
  std::string header{};  // of tables: what a first line of 0, 1 ... was taken for, for people
};

// Best first. TensorFlow's ImageNet scripts have the last one.
inline constexpr std::array<std::string_view, 8> kLabelNames = {
    "label", "labels", "target", "class", "y", "fine_label", "cls", "image/class/label"};

// Ranks a column that can be the label: the smaller rank is better, and empty means no label. If
// the job names a column, no other counts.
inline std::optional<size_t> label_rank(std::string_view name, const ColumnNames& wanted) {
  if (!wanted.label.empty()) return name == wanted.label ? std::optional<size_t>(0) : std::nullopt;
  const auto* const found = std::find(kLabelNames.begin(), kLabelNames.end(), lower_case(name));
  if (found == kLabelNames.end()) return std::nullopt;
  return static_cast<size_t>(found - kLabelNames.begin());
}

// Says what is missing, and what to do: "has no label: ...", after the name of a file. `has`: its
// columns, with their types. `what`: what the column of the input must hold.
std::string no_label_text(const ColumnNames& wanted, const std::string& has);
std::string no_input_text(const ColumnNames& wanted, const std::string& what,
                          const std::string& has);

}  // namespace lockstep::data
