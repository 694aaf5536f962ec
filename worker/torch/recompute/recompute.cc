#include "worker/torch/recompute/recompute.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AutocastState {
  bool is_on = false;
  at::ScalarType type = at::kFloat;
  static AutocastState now(at::DeviceType device) {
    return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
  }
  void set(at::DeviceType device) const {
    at::autocast::set_autocast_enabled(device, is_on);
    at::autocast::set_autocast_dtype(device, type);
  }
};

// Restores forward's autocast. The end of the scope drops the cached casts.
class AutocastAgain {
 public:
  AutocastAgain(at::DeviceType device, const AutocastState& state)
      : device_(device), before_(AutocastState::now(device)) {
    state.set(device);
    at::autocast::increment_nesting();
  }
  ~AutocastAgain() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    before_.set(device_);
  }
  AutocastAgain(const AutocastAgain&) = delete;
  AutocastAgain& operator=(const AutocastAgain&) = delete;

 private:
  const at::DeviceType device_;
  const AutocastState before_;
};

// The values that a context keeps besides tensors.
struct Segment final : torch::CustomClassHolder {
  SegmentBody body;
  at::DeviceType device = at::kCPU;
  AutocastState autocast;
};

struct Recompute : torch::autograd::Function<Recompute> {
  static variable_list forward(AutogradContext* ctx, at::TensorList inputs,
                               const c10::intrusive_ptr<Segment>& segment) {
    ctx->save_for_backward(inputs.vec());
    ctx->set_materialize_grads(false);
    ctx->saved_data["segment"] = c10::IValue::make_capsule(segment);
    return segment->body(inputs);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    variable_list inputs = ctx->get_saved_variables();
    const auto segment =
        c10::static_intrusive_pointer_cast<Segment>(ctx->saved_data["segment"].toCapsule());
    variable_list differentiated;
    for (at::Tensor& input : inputs) {
      const bool needs_gradient = input.requires_grad();
      input = input.detach().set_requires_grad(needs_gradient);
      if (needs_gradient) differentiated.push_back(input);
    }
    const variable_list found = gradients_of(*segment, inputs, differentiated, gradients);
    variable_list out(inputs.size() + 1);  // the last belongs to the segment, which has none
    for (size_t i = 0, at = 0; i < inputs.size(); ++i)
      if (inputs[i].requires_grad()) out[i] = found[at++];
    return out;
  }

 private:
  static variable_list gradients_of(const Segment& segment, const variable_list& inputs,
                                    const variable_list& differentiated,
                                    const variable_list& gradients) {
    const at::AutoGradMode with_gradients(true);
    variable_list outputs;
    {
      const AutocastAgain autocast(segment.device, segment.autocast);
      outputs = segment.body(inputs);
    }
    variable_list roots;
    variable_list root_gradients;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(gradients[i]);
    }
    if (roots.empty()) return variable_list(differentiated.size());
    return torch::autograd::grad(roots, differentiated, root_gradients,
                                 /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(SegmentBody body, const std::vector<at::Tensor>& inputs) {
  auto segment = c10::make_intrusive<Segment>();
  segment->body = std::move(body);
  segment->device = inputs.front().device().type();
  segment->autocast = AutocastState::now(segment->device);
  return Recompute::apply(at::TensorList(inputs), segment);
}

}  // namespace lockstep
