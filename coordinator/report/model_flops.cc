#include "coordinator/report/model_flops.h"

namespace lockstep::coordinator {

double flops_per_sample(const wire::ModelSpec& model) {
  if (model.name() != "gpt2") return 0;
  const double layers = model.n_layer();
  const double channels = model.n_embd();
  const double tokens = model.block();  // of a sample
  const double weights = 12 * layers * channels * channels + model.vocab() * channels;
  return tokens * (6 * weights + 12 * layers * channels * tokens);
}

}  // namespace lockstep::coordinator
