// Finds the parameters of a model that are matrices of hidden layers (optimizer.name muon).
//
// Built-in models say it (ParameterSpec::is_hidden). A model from a file runs once, and its graph
// of derivatives tells. A matrix that a product of matrices multiplies with is hidden, except
//   - a matrix whose rows are looked up: an embedding, tied to the output or not, and
//   - the matrix of a product with no other product after it: the layer that gives the output.
//
// Thread-safety: a free function; the model belongs to one thread.
#pragma once

#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_shape.h"
#include "worker/torch/model/model.h"

namespace lockstep {

// By parameter of the layout. `classes` as make_model() takes it. LibTorch's exceptions pass
// through.
std::vector<bool> find_hidden_matrices(const Model& model, const wire::ModelSpec& spec,
                                       const data::SampleShape& shape, uint32_t classes);

}  // namespace lockstep
