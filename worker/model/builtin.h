// What builds each model of the table (comm/wire/models/model_table.h): one row in the file of
// each. Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "worker/model/model.h"

namespace lockstep {

// `classes`: of tokens their number, from the data or model.vocab. REQUIRES: the samples are of the
// kind that the model takes, by its row of the table.
using BuildModel = Result<std::unique_ptr<Model>> (*)(const wire::ModelSpec& spec,
                                                      const data::SampleShape& shape,
                                                      uint32_t classes);

struct ModelBuilder {
  std::string_view name;  // of the table of models
  BuildModel build = nullptr;
};

extern const ModelBuilder kMlpBuilder;
extern const ModelBuilder kCnnBuilder;
extern const ModelBuilder kResnet18Builder;
extern const ModelBuilder kResnet50Builder;
extern const ModelBuilder kGpt2Builder;

// From the file spec.path() (PLUGIN.md; TorchScript). kNoInput where it is not there, kUsage where
// its content is not spec.sha256(), if that is given, kConfig where it cannot be trained on these
// data. Tried with a few samples before it is returned.
extern const ModelBuilder kTorchscriptBuilder;
extern const ModelBuilder kPluginBuilder;

}  // namespace lockstep
