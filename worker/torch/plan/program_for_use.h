// A program for evaluation as a model that cannot be trained, because lockstep export model --int8
// writes no training program.
//
// Thread-safety: as Model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "data/dataset/sample_shape.h"
#include "worker/torch/model/model.h"

namespace lockstep::exported {

// The layout has no parameters: weights are the program's own. Its forward ignores
// ForwardMode::training. kConfig, with the path, if the program does not fit the samples or
// `classes`; errors of read_program().
Result<std::unique_ptr<Model>> open_program_for_use(const std::string& path,
                                                    const data::SampleShape& shape,
                                                    uint32_t classes);

}  // namespace lockstep::exported
