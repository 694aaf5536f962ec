// The program of model.predict_path: logits of inputs alone, with the parameters of the training
// program.
//
// Thread-safety: free functions; a Predictor as Model::forward().
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/sample_shape.h"
#include "worker/model/exported_program/roles.h"
#include "worker/model/spec.h"
#include "worker/torch/model/predictor.h"
#include "worker/torch/plan/bound_program.h"

namespace lockstep::exported {

// Gives the sources of a program's inputs, or says why it does not belong to the training program.
// The message begins with what the program does.
using SourcesFn =
    std::function<Result<std::vector<InputSource>>(const Program&, const ProgramRoles&)>;

// Null if the key is empty. Computes a random batch with the initial values of `layout`, which is
// the training program's.
// Errors: from read_program(); kConfig, with the program's file and what to do, if the program does
// not take the samples, does not belong to the training program, was exported in training mode, or
// does not give finite floats for each sample.
Result<std::unique_ptr<Predictor>> open_logits_program(const wire::ModelSpec& spec,
                                                       const data::SampleShape& shape,
                                                       const ModelLayout& layout,
                                                       const SourcesFn& sources_of);

}  // namespace lockstep::exported
