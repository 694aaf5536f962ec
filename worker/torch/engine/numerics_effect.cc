#include "worker/torch/engine/numerics_effect.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <optional>
#include <vector>

#include "comm/base/hash.h"
#include "worker/torch/model/fp8_linear.h"

namespace lockstep {
namespace {

// Spread over [-1, 1), the same everywhere.
at::Tensor numbers(int64_t seed, at::IntArrayRef shape, const at::TensorOptions& of) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const at::Tensor index = at::arange(count, at::kLong).add_(seed * 1'000'003);
  const at::Tensor mixed = index.mul_(2'654'435'761).remainder_(int64_t{1} << 24);
  return mixed.to(at::kFloat).div_(float{1 << 23}).sub_(1).to(of).reshape(shape);
}

void add(std::string& bytes, const at::Tensor& result) {
  const at::Tensor plain = result.to(at::kCPU).contiguous();
  bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
}

// Sizes that no vector divides, and sums long enough to be cut by the caches.
void add_results(std::string& bytes, const at::TensorOptions& of) {
  add(bytes, at::matmul(numbers(1, {37, 515}, of), numbers(2, {515, 83}, of)));
  const at::Tensor images = numbers(3, {4, 13, 15, 17}, of);
  const at::Tensor weights = numbers(4, {24, 13, 3, 3}, of);
  const std::vector<int64_t> one{1, 1};
  const at::Tensor maps =
      at::convolution(images, weights, {}, one, one, one, false, {0, 0}, /*groups=*/1);
  add(bytes, maps);
  const auto [to_images, to_weights, to_bias] =
      at::convolution_backward(numbers(5, maps.sizes(), of), images, weights, std::nullopt, one,
                               one, one, false, {0, 0}, 1, {true, true, false});
  add(bytes, to_images);
  add(bytes, to_weights);
  const at::Tensor values = numbers(6, {50, 100}, of);
  add(bytes, at::softmax(values, 1));
  add(bytes, at::gelu(values));
  add(bytes, at::exp(values));
  add(bytes, values.sum(0));
}

// LibTorch chooses its kernels by the type, the GPU and its settings.
void add_attention(std::string& bytes, const at::TensorOptions& of) {
  const at::AutoGradMode with_gradients(true);
  std::vector<at::Tensor> inputs;
  for (int64_t i = 0; i < 3; ++i)
    inputs.push_back(numbers(7 + i, {2, 3, 130, 64}, of).requires_grad_());
  const at::Tensor attended = at::scaled_dot_product_attention(
      inputs[0], inputs[1], inputs[2], {}, /*dropout_p=*/0.0, /*is_causal=*/true);
  attended.backward(numbers(10, attended.sizes(), of));
  add(bytes, attended.detach());
  for (const at::Tensor& input : inputs) add(bytes, input.grad());
}

// The three products of a linear layer, of sizes that a model has.
void add_fp8(std::string& bytes, const at::Device& device) {
  const at::TensorOptions of(device);
  const auto operand = [&](int64_t seed, at::IntArrayRef shape, at::ScalarType type) {
    return numbers(seed, shape, of.dtype(at::kFloat)).to(type);
  };
  const at::Tensor scale = at::ones({}, of.dtype(at::kFloat));
  const at::Tensor weight = operand(11, {208, 1040}, at::kFloat8_e4m3fn);
  for (const bool is_gradient : {false, true}) {
    const at::Tensor x = operand(
        12, {144, 1040}, is_gradient ? at::ScalarType::Float8_e5m2 : at::ScalarType::Float8_e4m3fn);
    add(bytes, fp8_matmul({x, scale}, {weight, scale}, /*is_fast=*/!is_gradient));
  }
}

}  // namespace

std::string numerics_effect_on(const at::Device& device, at::ScalarType type, bool in_fp8) {
  const at::NoGradGuard no_gradients;
  std::string bytes;
  for (const at::ScalarType each : {at::kFloat, type}) {
    const at::TensorOptions of = at::TensorOptions(device).dtype(each);
    add_results(bytes, of);
    add_attention(bytes, of);
    if (each == type) break;
  }
  if (in_fp8) add_fp8(bytes, device);
  return xxh3_hex(bytes.data(), bytes.size());
}

std::string numerics_effect(at::ScalarType type, bool in_fp8) {
  const at::NoGradGuard no_gradients;
  std::string bytes;
  add_results(bytes, at::kFloat);
  if (type != at::kFloat) add_results(bytes, type);
  if (in_fp8) add_fp8(bytes, at::kCPU);
  return xxh3_hex(bytes.data(), bytes.size());
}

Result<std::string> same_twice(const std::function<std::string()>& compute) {
  std::string first = compute();
  const std::string second = compute();
  if (first == second) return first;
  return Status(
      Code::kInternal,
      "this worker computed the same numbers twice, and the second results have other bits "
      "(" +
          first + ", then " + second +
          "): the processor or the memory of its machine may be faulty. If it comes again, "
          "take the machine out and test it");
}

}  // namespace lockstep
