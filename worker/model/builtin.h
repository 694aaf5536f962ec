// The built-in models; make_model() chooses by name.
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

}  // namespace lockstep
