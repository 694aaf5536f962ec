// The config.json that Hugging Face's libraries write next to weights. Two models may have tensors
// of the same names and shapes and compute differently: the config.json tells them apart.
//
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// `path`: local, of model.init: a directory, or a file, next to which config.json may be. Ok
// without a config.json, and for models from files, whose programs are not told apart by it.
// kConfig names every key that says something else than `model`, with what to set; kBadData for a
// config.json that cannot be read. REQUIRES: the model is resolved.
Status check_model_config(const std::string& path, const wire::ModelSpec& model);

}  // namespace lockstep
