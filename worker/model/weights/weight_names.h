// The names and layouts that other programs give to the tensors of a model, as Lockstep's.
//
// GPT-2 of Hugging Face: names with or without `transformer.`; matrices of linear layers lie (in,
// out), and Lockstep's (out, in). c_attn.weight, n x 3n or 3n x n, tells the two apart: it is never
// square, as c_proj.weight is. Masks (attn.bias, attn.masked_bias) are no weights, nor is lm_head,
// which is wte again.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

struct NamedTensor {
  std::string name;  // in the model
  const FileTensor* file = nullptr;
  bool is_transposed = false;    // in the file
  std::vector<int64_t> shape{};  // in the model
};

// The tensors of the files by the names of model.name `model`. They point into `all`. kConfig if
// nothing tells which layout the matrices of a GPT-2 have, kBadData if two get one name; the
// message begins with `whose`: "model.init".
Result<std::vector<NamedTensor>> name_tensors(const std::string& model, const std::string& whose,
                                              const std::vector<FileTensor>& all);

}  // namespace lockstep
