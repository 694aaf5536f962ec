#include "worker/torch/engine/numerics_effect.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <optional>
#include <vector>

#include "comm/base/hash.h"

namespace lockstep {
namespace {

// Spread over [-1, 1), the same everywhere.
at::Tensor numbers(int64_t seed, at::IntArrayRef shape, at::ScalarType type) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const at::Tensor index = at::arange(count, at::kLong).add_(seed * 1'000'003);
  const at::Tensor mixed = index.mul_(2'654'435'761).remainder_(int64_t{1} << 24);
  return mixed.to(at::kFloat).div_(float{1 << 23}).sub_(1).to(type).reshape(shape);
}

void add(std::string& bytes, const at::Tensor& result) {
  const at::Tensor plain = result.contiguous();
  bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
}

// Sizes that no vector divides, and sums long enough to be cut by the caches.
void add_results(std::string& bytes, at::ScalarType type) {
  add(bytes, at::matmul(numbers(1, {37, 515}, type), numbers(2, {515, 83}, type)));
  const at::Tensor images = numbers(3, {4, 13, 15, 17}, type);
  const at::Tensor weights = numbers(4, {24, 13, 3, 3}, type);
  const std::vector<int64_t> one{1, 1};
  const at::Tensor maps =
      at::convolution(images, weights, {}, one, one, one, false, {0, 0}, /*groups=*/1);
  add(bytes, maps);
  const auto [to_images, to_weights, to_bias] =
      at::convolution_backward(numbers(5, maps.sizes(), type), images, weights, std::nullopt, one,
                               one, one, false, {0, 0}, 1, {true, true, false});
  add(bytes, to_images);
  add(bytes, to_weights);
  const at::Tensor values = numbers(6, {50, 100}, type);
  add(bytes, at::softmax(values, 1));
  add(bytes, at::gelu(values));
  add(bytes, at::exp(values));
  add(bytes, values.sum(0));
}

}  // namespace

std::string numerics_effect(at::ScalarType type) {
  const at::NoGradGuard no_gradients;
  std::string bytes;
  add_results(bytes, at::kFloat);
  if (type != at::kFloat) add_results(bytes, type);
  return xxh3_hex(bytes.data(), bytes.size());
}

}  // namespace lockstep
