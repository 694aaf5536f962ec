#include "worker/torch/model/layers.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include "worker/torch/model/fp8_linear.h"

namespace lockstep {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEps = 1e-5;

at::Tensor observed(const Forward& f, uint32_t parameter, at::Tensor output) {
  if (f.mode.observer != nullptr) (*f.mode.observer)(parameter, output);
  return output;
}

// The sink outlives backward (ForwardMode). A context keeps addresses as numbers.
struct CastWeight : torch::autograd::Function<CastWeight> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& weight, at::ScalarType type,
                            int64_t parameter, GradientSink* sink) {
    ctx->saved_data["parameter"] = parameter;
    ctx->saved_data["sink"] = reinterpret_cast<int64_t>(sink);
    return weight.to(type);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as forward() put it there
    auto* sink = reinterpret_cast<GradientSink*>(ctx->saved_data["sink"].toInt());
    const auto parameter = static_cast<uint32_t>(ctx->saved_data["parameter"].toInt());
    const bool is_taken = sink->take_cast(parameter, gradients[0]);
    return {is_taken ? at::Tensor() : gradients[0].to(at::kFloat), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor cast_weight(const Forward& f, uint32_t parameter) {
  const at::Tensor& weight = f.parameters[parameter];
  const at::DeviceType device = weight.device().type();
  if (f.mode.sink == nullptr || !at::autocast::is_autocast_enabled(device)) return weight;
  return CastWeight::apply(weight, at::autocast::get_autocast_dtype(device), parameter,
                           f.mode.sink);
}

at::Tensor linear_product(const Forward& f, const at::Tensor& x, uint32_t weight) {
  const at::Tensor cast = cast_weight(f, weight);
  return f.mode.is_fp8 ? fp8_linear(x, cast, f.mode.fp8) : at::linear(x, cast);
}

at::Tensor linear(const Forward& f, const at::Tensor& x, uint32_t weight) {
  if (f.mode.is_fp8) {
    const at::Tensor product = linear_product(f, x, weight);
    return observed(f, weight,
                    at::add(product, cast_weight(f, weight + 1).to(product.scalar_type())));
  }
  return observed(f, weight, at::linear(x, cast_weight(f, weight), cast_weight(f, weight + 1)));
}

at::Tensor conv(const Forward& f, const at::Tensor& x, uint32_t weight) {
  return observed(f, weight, at::conv2d(x, cast_weight(f, weight), cast_weight(f, weight + 1)));
}

at::Tensor conv_without_bias(const Forward& f, const at::Tensor& x, uint32_t weight,
                             const ConvPlace& place) {
  return observed(f, weight,
                  at::conv2d(x, cast_weight(f, weight), /*bias=*/{}, place.stride, place.padding));
}

at::Tensor batch_norm(const Forward& f, const at::Tensor& x,
                      const LayoutBuilder::BatchNorm& layer) {
  return observed(f, layer.weight,
                  at::batch_norm(x, f.parameters[layer.weight], f.parameters[layer.weight + 1],
                                 f.buffers[layer.running_mean], f.buffers[layer.running_mean + 1],
                                 f.mode.training, kBatchNormMomentum, kBatchNormEps,
                                 /*cudnn_enabled=*/f.mode.is_fast));
}

at::Tensor layer_norm(const Forward& f, const at::Tensor& x, uint32_t weight) {
  return observed(f, weight,
                  at::layer_norm(x, {x.size(-1)}, f.parameters[weight], f.parameters[weight + 1],
                                 kLayerNormEps, /*cudnn_enable=*/false));
}

}  // namespace lockstep
