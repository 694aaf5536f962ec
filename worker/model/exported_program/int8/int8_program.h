// An exported program with its weights in 8 bits, which torch.export.load() opens and runs by plain
// operators of PyTorch.
//
// | a weight of                 | is held as      | the program computes                       |
// |---|---|---|
// | linear, addmm, mm, matmul   | 8 bits          | as Int8Form says                           |
// | embedding                   | 8 bits          | gathers rows, then multiplies by the scale |
// | any other operator          | 8 bits          | with the floats, which it makes first      |
// | one dimension, or too small | float32         | as before                                  |
//
// A weight that several operators share (tied) is held once, and each use takes its own row of the
// table.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep::exported {

enum class Int8Form : uint8_t {
  // Each row of the input becomes 8 bits with a scale of its own, and aten._int_mm multiplies whole
  // numbers: fast on CPUs with AVX512-VNNI, very slow on others.
  kDynamic,
  // The numbers become floats, are multiplied as such, and the result is scaled: about as fast as
  // with float weights, anywhere.
  kWeights,
};

struct Int8Counts {
  uint32_t tensors = 0;   // in 8 bits
  uint32_t products = 0;  // linear layers as `form` says
  uint32_t gathers = 0;   // embeddings
  uint32_t floats = 0;    // weights whose floats the program makes
};

// `from`: a program for evaluation, with its weights. `to`: a new file, which appears whole or not
// at all. kBadData or kConfig if `from` cannot be read (read_program.h) or a weight is not finite;
// kConfig if no weight can be in 8 bits; kInternal if `to` cannot be written.
Result<Int8Counts> write_int8_program(const std::string& from, const std::string& to,
                                      Int8Form form);

}  // namespace lockstep::exported
