// The header of a NumPy array file: a magic, a version, the length of a text, and the text. The
// text is a Python dictionary with the keys descr, fortran_order and shape. The content follows.
//
//     \x93NUMPY | major (1) minor (1) | length of the text (2 little-endian; from 2.0 on: 4) | text
//
// The parser reads versions 1.0, 2.0 and 3.0. Its grammar covers the dictionaries that NumPy
// writes, not Python: strings in single or double quotes without escapes, True, False, and a tuple
// of whole numbers. Bytes come from outside: the parser never recurses or allocates by what they
// say, and checks every product.
//
// All errors are kBadData, one clause; the caller puts the file's name before it. The parser
// refuses some kinds of arrays for all uses alike, by name and with what to do: Fortran order,
// big-endian numbers, Python objects, structured arrays, texts and dates.
//
// Source: numpy.lib.format, "NPY format" (numpy.org/doc/stable/reference/generated/
// numpy.lib.format.html).
//
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct NpyHeader {
  char kind = 0;               // 'u', 'i', 'f', 'c' or 'b', as in the descr
  uint32_t element_bytes = 0;  // 1, 2, 4, 8 or 16; little-endian
  std::vector<uint64_t> dims;  // at most limits::kNpyDims
  uint64_t header_bytes = 0;   // where the content begins
  uint64_t content_bytes = 0;  // product of dims times element_bytes, <= limits::kDatasetBytes
  uint64_t file_bytes() const { return header_bytes + content_bytes; }

  bool is_integer() const { return kind == 'u' || kind == 'i'; }
  std::string type_text() const;   // "uint16"
  std::string shape_text() const;  // "(60000, 28, 28)"
};

bool is_npy(std::span<const uint8_t> file);  // by its magic

// "tokens" for an array of one dimension, else "npy". An unreadable file counts as tokens: opening
// it says what is wrong.
std::string kind_of_array(std::span<const uint8_t> file);

// `head`: the file, or at least its first limits::kNpyHeaderBytes.
Result<NpyHeader> parse_npy_header(std::span<const uint8_t> head);

// Refuses a file that is shorter or longer than its header says.
Status check_npy_size(const NpyHeader& header, uint64_t file_bytes);

// The i-th element as a number; the largest int64 for numbers beyond int64. REQUIRES: is_integer();
// `content` has as many elements as the header says.
int64_t npy_integer(const NpyHeader& header, const uint8_t* content, uint64_t i);

}  // namespace lockstep::data
