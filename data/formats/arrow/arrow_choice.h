// Chooses which columns of an Arrow file are its samples, and what the samples are.
//
// - Images are a column of binary, or of the struct {bytes, path} of Hugging Face's datasets, with
//   JPEG or PNG.
// - Pixels are uint8 in a fixed_size_list or fixed_size_binary with a stated shape. The shape is in
//   the type arrow.fixed_shape_tensor, in lists in lists, or in the field's metadata `shape`, a
//   JSON list.
// - Rows of a table are float32 in a fixed_size_list.
// - The label of an image or row is a column of whole numbers, chosen by name (column_names.h).
// - Tokens are a column of lists of whole numbers, or of whole numbers.
//
// A job may name further targets and a weight (data/dataset/fields.h) for pixels and rows: columns
// of numbers, or of fixed_size_list of numbers.
//
// A job may name both columns. Else names decide between several columns of a kind; nothing may
// remain ambiguous, and no column is the label without a name that says so.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/schema.h"
#include "data/base/column_names.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

enum class ArrowUse { kEncoded, kPixels, kTokens };  // rows count as pixels of one place

struct ArrowChoice {
  ArrowUse use = ArrowUse::kEncoded;
  size_t samples = 0;  // which column
  size_t label = 0;    // which column; for images and rows without `fields`
  // Which columns are the targets, or else the label, and the weight; empty: there is a label
  // alone.
  std::vector<size_t> fields = {};
  SampleShape shape;  // for pixels and rows
  // By label, as Hugging Face's metadata (features: ClassLabel) say; may be empty.
  std::vector<std::string> classes;
  std::vector<std::string> row_names{};  // of the values of a row, as row_metadata() says
  TakenColumns columns;
};

// kBadData or kUsage: the message goes on after the file's name.
Result<ArrowChoice> choose_columns(const ArrowSchema& schema, const ColumnNames& wanted = {});

// True if the names say more than the numbers that they stand for.
bool are_names(const std::vector<std::string>& classes);

// Metadata that choose_columns() understands: for a field of pixels, for a field of rows with the
// names of their values, for the field of a target with the names of its classes, and for a schema
// with a label.
std::map<std::string, std::string> shape_metadata(const SampleShape& shape);
std::map<std::string, std::string> row_metadata(const std::vector<std::string>& names);
std::map<std::string, std::string> target_metadata(const std::vector<std::string>& classes);
std::map<std::string, std::string> classes_metadata(const std::string& label,
                                                    const std::vector<std::string>& classes);

}  // namespace lockstep::data
