// A small model for images: linear, batch norm, ReLU, dropout, linear.
#include <ATen/ATen.h>
#include <lockstep/plugin.h>
#include <torch/headeronly/version.h>

#include <cmath>
#include <memory>
#include <stdexcept>

namespace {

constexpr int64_t kHidden = 32;
constexpr double kDropout = 0.25;

// The index of each tensor, from add_parameter() and add_buffer().
struct SmallNet {
  uint32_t hidden_weight, hidden_bias, norm_weight, norm_bias, out_weight, out_bias;
  uint32_t running_mean, running_var;
};

const at::Tensor& tensor(const void* pointer) {
  return *static_cast<const at::Tensor*>(pointer);
}

}  // namespace

void lockstep_model_describe(LockstepModelDescription* model) {
  if (!lockstep_handshake(model, TORCH_VERSION)) return;
  if (model->tokens > 0) throw std::runtime_error("small_net is for images");
  auto net = std::make_unique<SmallNet>();
  const int64_t pixels = int64_t{model->channels} * model->height * model->width;
  const auto linear = [model](const char* weight, const char* bias, int64_t in, int64_t out,
                              uint32_t* weight_index, uint32_t* bias_index) {
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    const int64_t shape[] = {out, in};
    *weight_index = model->add_parameter(model, weight, shape, 2, LOCKSTEP_INIT_UNIFORM, bound);
    *bias_index = model->add_parameter(model, bias, shape, 1, LOCKSTEP_INIT_UNIFORM, bound);
  };
  linear("hidden.weight", "hidden.bias", pixels, kHidden, &net->hidden_weight, &net->hidden_bias);
  net->norm_weight =
      model->add_parameter(model, "norm.weight", &kHidden, 1, LOCKSTEP_INIT_CONSTANT, 1);
  net->norm_bias = model->add_parameter(model, "norm.bias", &kHidden, 1, LOCKSTEP_INIT_CONSTANT, 0);
  linear("out.weight", "out.bias", kHidden, model->classes, &net->out_weight, &net->out_bias);
  net->running_mean = model->add_buffer(model, "norm.running_mean", kHidden, 0);
  net->running_var = model->add_buffer(model, "norm.running_var", kHidden, 1);
  model->values_per_batch_norm = 1;  // for one sample: one value for each of the hidden values
  model->instance = net.release();
  model->free_instance = [](void* instance) { delete static_cast<SmallNet*>(instance); };
}

void lockstep_model_forward(LockstepModelForward* call) {
  const SmallNet& net = *static_cast<const SmallNet*>(call->instance);
  const auto p = [call](uint32_t index) { return tensor(call->parameters[index]); };
  const auto b = [call](uint32_t index) { return tensor(call->buffers[index]); };
  const bool training = call->training != 0;

  at::Tensor h =
      at::linear(tensor(call->input).flatten(1), p(net.hidden_weight), p(net.hidden_bias));
  h = at::batch_norm(h, p(net.norm_weight), p(net.norm_bias), b(net.running_mean),
                     b(net.running_var), training, /*momentum=*/0.1, /*eps=*/1e-5,
                     /*cudnn_enabled=*/false);
  h = at::dropout(at::relu(h), kDropout, training);
  *static_cast<at::Tensor*>(call->output) =
      at::linear(h, p(net.out_weight), p(net.out_bias));  // (B, classes)
}
