// A plug-in with a loss of its own, weights and metrics: one linear layer over rows. The variable
// LOCKSTEP_LOSS_PLUGIN names one thing that can be wrong.
#include <ATen/ATen.h>
#include <torch/headeronly/version.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "worker/model/plugin.h"

namespace {

const at::Tensor& tensor(const void* pointer) {
  return *static_cast<const at::Tensor*>(pointer);
}

void give(void* place, const at::Tensor& value) {
  *static_cast<at::Tensor*>(place) = value;
}

bool is_wrong(std::string_view how) {
  const char* set = std::getenv("LOCKSTEP_LOSS_PLUGIN");
  return set != nullptr && how == set;
}

at::Tensor logits(const void* input, const void* const* parameters) {
  return at::linear(tensor(input).flatten(1), tensor(parameters[0]));
}

}  // namespace

void lockstep_model_describe(LockstepModelDescription* model) {
  if (!lockstep_handshake(model, TORCH_VERSION)) return;
  const int64_t shape[] = {model->classes, model->channels};
  model->add_parameter(model, "weight", shape, 2, LOCKSTEP_INIT_UNIFORM, 0.5);
}

void lockstep_model_forward(LockstepModelForward* call) {
  give(call->output, logits(call->input, call->parameters));
}

void lockstep_model_losses(LockstepModelLosses* call) {
  const at::Tensor out = logits(call->input, call->parameters);
  const at::Tensor& labels = tensor(call->labels);
  const at::Tensor losses = at::cross_entropy_loss(out, labels, {}, /*reduction=*/0);
  give(call->losses, is_wrong("matrix") ? out : losses * 2);
  give(call->weights, at::ones_like(losses) * 2);
  give(call->metrics[0], out.argmax(1).eq(labels).to(at::kFloat));
  call->metric_names[0] = is_wrong("name") ? "two words" : "hit";
}
