// The builder of each model in the table (comm/run/job/models/model_table.h). Each model's file has
// one row.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "worker/torch/model/model.h"

namespace lockstep {

// `classes`: for tokens the size of the vocabulary, from the data or model.vocab. REQUIRES: the
// samples are of the kind that the model's row of the table takes.
using BuildModel = Result<std::unique_ptr<Model>> (*)(const wire::ModelSpec& spec,
                                                      const data::SampleShape& shape,
                                                      uint32_t classes);

struct ModelBuilder {
  std::string_view name;  // in the table of models
  BuildModel build = nullptr;
};

extern const ModelBuilder kMlpBuilder;
extern const ModelBuilder kCnnBuilder;
extern const ModelBuilder kResnet18Builder;
extern const ModelBuilder kResnet50Builder;
extern const ModelBuilder kGpt2Builder;

// Models from the file spec.path() (PLUGIN.md; TorchScript; torch.export). The builder tries the
// model with a few samples before it returns the model. Errors: kNoInput if the file is not there;
// kUsage if spec.sha256() is given and the content differs; kConfig if the model cannot be trained
// on these data.
extern const ModelBuilder kTorchscriptBuilder;
extern const ModelBuilder kPluginBuilder;
extern const ModelBuilder kExportedBuilder;

inline constexpr const ModelBuilder* kBuilders[] = {
    &kMlpBuilder,  &kCnnBuilder,         &kResnet18Builder, &kResnet50Builder,
    &kGpt2Builder, &kTorchscriptBuilder, &kPluginBuilder,   &kExportedBuilder,
};

}  // namespace lockstep
