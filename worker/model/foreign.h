// What a model from a file must do for the engine: seen at start with a few samples, and in every
// forward as far as that is free.
//
// Thread-safety: free functions without state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/model.h"

namespace lockstep {

// Samples of chance, the same each time: floats in [-1, 1), or tokens below `classes`. Zeros would
// leave the statistics of a batch norm as they are.
at::Tensor sample_input(const data::SampleShape& shape, uint64_t batch, uint32_t classes);

// As x has it, which may be shorter than padded documents can be.
data::SampleShape shape_of_input(data::SampleShape shape, const at::Tensor& x);

bool same_bits(const at::Tensor& a, const at::Tensor& b);

// "" if `output` is what a model gives for `batch` samples: floats (B, classes), or (B, T,
// classes). Else what it is and what is needed.
std::string wrong_output(const at::Tensor& output, const data::SampleShape& shape, uint64_t batch,
                         uint32_t classes);

// One line of what an exception of LibTorch, or of a script, says, without its stack.
std::string one_line(const std::exception& error);

// Runs the model in both modes, with its initial values, on padded documents of both widths that
// they have, too. kConfig, beginning with `who`, where it
// throws, gives something else than finite logits, gives what does not depend on its parameters, or
// changes buffers in evaluation.
Status check_start(const Model& model, const std::string& who, const data::SampleShape& shape,
                   uint32_t classes);

}  // namespace lockstep
