// The models that make_model() chooses from by name: built-in ones, and those from a file.
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/model/model.h"

namespace lockstep {

Result<std::unique_ptr<Model>> make_mlp(const wire::ModelSpec& spec, const data::SampleShape& shape,
                                        uint32_t classes);
Result<std::unique_ptr<Model>> make_cnn(const wire::ModelSpec& spec, const data::SampleShape& shape,
                                        uint32_t classes);

// `depth`: 18 or 50.
Result<std::unique_ptr<Model>> make_resnet(const wire::ModelSpec& spec,
                                           const data::SampleShape& shape, uint32_t classes,
                                           uint32_t depth);

// `vocab`: the tokens' number, from the data or model.vocab.
Result<std::unique_ptr<Model>> make_gpt2(const wire::ModelSpec& spec,
                                         const data::SampleShape& shape, uint32_t vocab);

// From the file spec.path() (PLUGIN.md; TorchScript). kNoInput where it is not there, kUsage where
// its content is not spec.sha256(), if that is given, kConfig where it cannot be trained on these
// data. Tried with a few samples before it is returned.
Result<std::unique_ptr<Model>> make_torchscript(const wire::ModelSpec& spec,
                                                const data::SampleShape& shape, uint32_t classes);
Result<std::unique_ptr<Model>> make_plugin(const wire::ModelSpec& spec,
                                           const data::SampleShape& shape, uint32_t classes);

}  // namespace lockstep
