// The text in the header of a NumPy array file (npy_header.h), taken apart but not interpreted.
//
//     dict  := '{' (key ':' value (',' key ':' value)* ','?)? '}'    blanks between, and after
//     key   := 'descr' | 'fortran_order' | 'shape'                   each exactly once
//     value := string | list of a structured dtype | True | False | '(' (n (',' n)* ','?)? ')'
//
// Thread-safety: a pure function and values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::data {

struct NpyText {
  std::string descr;           // "<u2"; at most 32 bytes, printable
  bool is_structured = false;  // the descr is a list; the parser skips and does not set the rest
  bool is_fortran_order = false;
  std::vector<uint64_t> shape;  // at most limits::kNpyDims
};

// kBadData, a clause without the file's name, for anything else.
Result<NpyText> parse_npy_text(std::string_view text);

}  // namespace lockstep::data
