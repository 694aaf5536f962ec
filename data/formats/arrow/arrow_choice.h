// Which columns of an Arrow file are its samples, and what these are.
//
// Images are a column of binary, or of the struct {bytes, path} of Hugging Face's datasets, with
// JPEG or PNG; or pixels, uint8, in a fixed_size_list or fixed_size_binary whose shape is said: by
// the type arrow.fixed_shape_tensor, lists in lists, or the field's metadata `shape`, a JSON list.
// Rows of a table are float32 in a fixed_size_list. The label of either is a column of whole
// numbers. Tokens are a column of lists of whole numbers, or of these themselves. Names decide
// between several of a kind; nothing else may be left open.
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/arrow/schema.h"
#include "data/dataset/sample_shape.h"

namespace lockstep::data {

enum class ArrowUse { kEncoded, kPixels, kTokens };  // rows are pixels of one place

struct ArrowChoice {
  ArrowUse use = ArrowUse::kEncoded;
  size_t samples = 0;  // which column
  size_t label = 0;    // likewise; of images and rows
  SampleShape shape;   // of pixels and rows
  // Of labels, as Hugging Face's metadata (features: ClassLabel) say them; may be empty.
  std::vector<std::string> classes;
};

// kBadData or kUsage going on after the file's name.
Result<ArrowChoice> choose_columns(const ArrowSchema& schema);

// Whether the names say more than the numbers that they stand for.
bool are_names(const std::vector<std::string>& classes);

// Metadata that choose_columns() understands: of a field of pixels, and of a schema with a label.
std::map<std::string, std::string> shape_metadata(const SampleShape& shape);
std::map<std::string, std::string> classes_metadata(const std::string& label,
                                                    const std::vector<std::string>& classes);

}  // namespace lockstep::data
