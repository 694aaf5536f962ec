#include "worker/torch/engine/slot_gradients.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace lockstep {
namespace {

// The memory at `out`, with the shape and on the device of `like`.
at::Tensor place_of(const at::Tensor& like, float* out) {
  return at::for_blob(out, like.sizes())
      .options(like.options().requires_grad(false))
      .target_device(like.device())
      .make_tensor();
}

}  // namespace

struct SlotGradients::Hook final : torch::autograd::PostAccumulateGradHook {
  Hook(SlotGradients* o, uint32_t p) : owner(o), parameter(p) {}
  void operator()(const at::Tensor&) override { owner->take(parameter); }
  SlotGradients* owner;
  uint32_t parameter;
};

SlotGradients::SlotGradients(const FlatLayout& layout, std::vector<at::Tensor> parameters)
    : layout_(layout), parameters_(std::move(parameters)), taken_(parameters_.size()) {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (!layout_.is_trained(i)) continue;
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i], std::make_unique<Hook>(this, i));
  }
}

SlotGradients::~SlotGradients() {
  for (const at::Tensor& p : parameters_)
    if (p.requires_grad()) torch::autograd::impl::set_post_acc_grad_hooks(p, nullptr);
}

void SlotGradients::backward(const at::Tensor& output, const at::Tensor& output_gradient,
                             float* region, const std::function<void(uint32_t)>& on_ready) {
  region_ = region;
  const auto end = c10::make_scope_exit([this] { region_ = nullptr; });
  on_ready_ = &on_ready;
  std::fill(taken_.begin(), taken_.end(), false);
  for (const at::Tensor& p : parameters_) p.mutable_grad().reset();  // of one that was cut short
  torch::autograd::backward({output}, {output_gradient});
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (taken_[i] || !layout_.is_trained(i))
      continue;  // G1: a parameter that the output does not depend on
    const FlatTensor& place = layout_.parameters[i];
    place_of(parameters_[i], region_ + place.begin).zero_();
    deliver(i);
  }
}

bool SlotGradients::take_cast(uint32_t parameter, const at::Tensor& gradient) {
  if (region_ == nullptr) return false;
  put(parameter, gradient);
  deliver(parameter);
  return true;
}

void SlotGradients::take(uint32_t parameter) {
  at::Tensor& gradient = parameters_[parameter].mutable_grad();
  if (!gradient.defined()) return;  // autograd still calls the hook if take_cast() got the gradient
  put(parameter, gradient);
  gradient.reset();
  deliver(parameter);
}

void SlotGradients::put(uint32_t parameter, const at::Tensor& gradient) {
  // The second gradient would have to be added to a region that others may read already.
  TORCH_CHECK(!taken_[parameter], "parameter ", parameter, " has two gradients in one backward");
  const FlatTensor& place = layout_.parameters[parameter];
  float* out = region_ + place.begin;
  if (gradient.is_cpu() && gradient.is_contiguous() && gradient.scalar_type() == at::kFloat) {
    std::memcpy(out, gradient.const_data_ptr<float>(), place.elements * sizeof(float));
  } else {
    place_of(parameters_[parameter], out).copy_(gradient);
  }
}

void SlotGradients::deliver(uint32_t parameter) {
  taken_[parameter] = true;
  if (*on_ready_) (*on_ready_)(parameter);
}

}  // namespace lockstep
