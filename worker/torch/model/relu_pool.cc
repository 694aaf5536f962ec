#include "worker/torch/model/relu_pool.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <memory>
#include <utility>

#include "worker/model/relu_pool_kernel.h"

namespace lockstep {
namespace {

struct ReluPoolBackward final : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::Tensor out_gradient = gradients[0].contiguous();  // (B, C, H / 2, W / 2)
    const at::Tensor in_gradient = at::empty(in_sizes, out_gradient.options());
    relu_pool_backward(out_gradient.const_data_ptr<float>(), chosen.const_data_ptr<uint8_t>(),
                       shape, in_gradient.mutable_data_ptr<float>());
    return {in_gradient};
  }
  std::string name() const override { return "ReluPoolBackward"; }
  void release_variables() override { chosen.reset(); }

  std::vector<int64_t> in_sizes;
  PoolShape shape;
  at::Tensor chosen;  // (B, C, H / 2, W / 2), uint8
};

}  // namespace

at::Tensor relu_max_pool2(const at::Tensor& x) {
  if (!x.is_cpu()) return at::max_pool2d(at::relu(x), 2);
  // Under autocast. Nothing here rounds, and a float holds every value of the short types.
  if (x.scalar_type() != at::kFloat) return relu_max_pool2(x.to(at::kFloat)).to(x.scalar_type());
  const at::Tensor in = x.contiguous();
  const PoolShape shape{in.size(0) * in.size(1), in.size(2), in.size(3)};
  const std::vector<int64_t> sizes{in.size(0), in.size(1), in.size(2) / 2, in.size(3) / 2};
  at::Tensor out = at::empty(sizes, in.options().requires_grad(false));
  const at::Tensor chosen = at::empty(sizes, at::kByte);
  relu_pool_forward(in.const_data_ptr<float>(), shape, out.mutable_data_ptr<float>(),
                    chosen.mutable_data_ptr<uint8_t>());
  if (!at::GradMode::is_enabled() || !x.requires_grad()) return out;
  std::shared_ptr<ReluPoolBackward> node(new ReluPoolBackward, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(in));
  node->in_sizes = in.sizes().vec();
  node->shape = shape;
  node->chosen = chosen;
  torch::autograd::set_history(out, node);
  return out;
}

}  // namespace lockstep
