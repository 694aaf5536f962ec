#include "worker/model/layers.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

namespace lockstep {

namespace {
constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEps = 1e-5;

at::Tensor observed(const Forward& f, uint32_t parameter, at::Tensor output) {
  if (f.mode.observer != nullptr) (*f.mode.observer)(parameter, output);
  return output;
}
}  // namespace

at::Tensor linear(const Forward& f, const at::Tensor& x, uint32_t weight) {
  return observed(f, weight, at::linear(x, f.parameters[weight], f.parameters[weight + 1]));
}

at::Tensor conv(const Forward& f, const at::Tensor& x, uint32_t weight) {
  return observed(f, weight, at::conv2d(x, f.parameters[weight], f.parameters[weight + 1]));
}

at::Tensor conv_without_bias(const Forward& f, const at::Tensor& x, uint32_t weight,
                             const ConvPlace& place) {
  return observed(f, weight,
                  at::conv2d(x, f.parameters[weight], /*bias=*/{}, place.stride, place.padding));
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
