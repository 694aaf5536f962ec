// Finds the weights of an exported program that can be held in 8 bits, and their uses.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

enum class UseKind : uint8_t {
  kLinear,  // aten.linear: weight (out, in)
  kMatrix,  // aten.addmm, mm, matmul: weight (in, out)
  kGather,  // aten.embedding: rows
  kValue,   // anything else: the operator takes the floats
};

struct WeightUse {
  size_t node = 0;  // of the program's graph
  UseKind kind = UseKind::kValue;
};

struct Int8Weight {
  uint32_t tensor = 0;          // of Program::tensors
  size_t channel_dim = 0;       // of its output channels, each of which gets a scale
  std::vector<WeightUse> uses;  // by node
};

// Parameters with two dimensions or more that are worth it. Left out: one that an operator writes
// to, or that the program gives as its result.
std::vector<Int8Weight> find_int8_weights(const Program& program);

}  // namespace lockstep::exported
