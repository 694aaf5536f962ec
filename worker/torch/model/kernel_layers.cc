#include "worker/torch/model/kernel_layers.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>
#include <vector>

#include "worker/cuda/kernels/column_sums.h"
#include "worker/cuda/kernels/dropout.h"
#include "worker/model/dropout_mask.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls body(kernels) with the kernels for activations of `type`; false if there are none.
template <typename Body>
bool with_kernels(const Forward& f, at::ScalarType type, const Body& body) {
  if (f.mode.observer != nullptr) return false;
  const auto call = [&](auto* kernels) {
    if (kernels != nullptr) body(*kernels);
    return kernels != nullptr;
  };
  if (type == at::kFloat) return call(f.mode.kernels.of_floats);
  return type == at::kBFloat16 && call(f.mode.kernels.of_bf16);
}

void check(const Status& status) {
  TORCH_CHECK(status.is_ok(), status.message());
}

template <typename T>
T* data(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

// Activations as rows of their last dimension.
struct Rows {
  explicit Rows(const at::Tensor& x)
      : n(static_cast<uint32_t>(x.size(-1))), rows(static_cast<uint32_t>(x.numel() / x.size(-1))) {}
  // Floats on the device of `like`.
  at::Tensor floats(const at::Tensor& like, uint64_t count) const {
    return at::empty({static_cast<int64_t>(count)}, like.options().dtype(at::kFloat));
  }
  at::Tensor partials(const at::Tensor& like, uint64_t sums) const {
    return floats(like, sums * cuda::column_chunks(rows) * n);
  }
  uint32_t n;
  uint32_t rows;
};

// Keeps the kernels for backward. A context keeps addresses as numbers.
template <typename Kernels>
void keep(AutogradContext* ctx, Kernels* kernels) {
  ctx->saved_data["kernels"] = reinterpret_cast<int64_t>(kernels);
}
template <typename Kernels>
Kernels& kept(AutogradContext* ctx) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as keep() put it there
  return *reinterpret_cast<Kernels*>(ctx->saved_data["kernels"].toInt());
}

template <typename T>
struct NormFunction : torch::autograd::Function<NormFunction<T>> {
  using Kernels = LayerKernelsOf<T>;

  // -> y, and with a branch the stream.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x,
                               const std::optional<at::Tensor>& added, const at::Tensor& gain,
                               const at::Tensor& bias, Kernels* kernels) {
    const Rows shape(x);
    const at::Tensor branch = added.value_or(at::Tensor());
    const at::Tensor stream = branch.defined() ? at::empty_like(x) : x;
    const at::Tensor y = at::empty_like(x);
    const at::Tensor mean = shape.floats(x, shape.rows);
    const at::Tensor rstd = shape.floats(x, shape.rows);
    check(kernels->norm({data<T>(x), data<T>(branch), data<float>(gain), data<float>(bias),
                         static_cast<float>(kLayerNormEps), data<T>(stream), data<T>(y),
                         data<float>(mean), data<float>(rstd)},
                        shape.rows, shape.n));
    ctx->save_for_backward({stream, gain, mean, rstd});
    ctx->set_materialize_grads(false);
    keep(ctx, kernels);
    return branch.defined() ? variable_list{y, stream} : variable_list{y};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& stream = saved[0];
    const bool has_branch = gradients.size() == 2;
    const Rows shape(stream);
    const at::Tensor dy =
        gradients[0].defined() ? gradients[0].contiguous() : at::zeros_like(stream);
    at::Tensor d_stream;
    if (has_branch && gradients[1].defined()) d_stream = gradients[1].contiguous();
    const at::Tensor dx = at::empty_like(stream);
    const at::Tensor d_gain = shape.floats(stream, shape.n);
    const at::Tensor d_bias = shape.floats(stream, shape.n);
    const at::Tensor partials = shape.partials(stream, 2);
    check(kept<Kernels>(ctx).norm_backward(
        {data<T>(dy), data<T>(d_stream), data<T>(stream), data<float>(saved[1]),
         data<float>(saved[2]), data<float>(saved[3]), data<T>(dx)},
        shape.rows, shape.n, {data<float>(partials), data<float>(d_gain), data<float>(d_bias)}));
    return {dx, has_branch ? dx : at::Tensor(), d_gain, d_bias, at::Tensor()};
  }
};

template <typename T>
struct BiasGeluFunction : torch::autograd::Function<BiasGeluFunction<T>> {
  using Kernels = LayerKernelsOf<T>;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias,
                            Kernels* kernels) {
    const Rows shape(x);
    at::Tensor y = at::empty_like(x);
    check(kernels->bias_gelu({data<T>(x), data<float>(bias), data<T>(y)}, shape.rows, shape.n));
    ctx->save_for_backward({x, bias});
    keep(ctx, kernels);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const Rows shape(x);
    const at::Tensor dy = gradients[0].contiguous();
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor d_bias = shape.floats(x, shape.n);
    const at::Tensor partials = shape.partials(x, 1);
    check(kept<Kernels>(ctx).bias_gelu_backward(
        {data<T>(dy), data<T>(x), data<float>(saved[1]), data<T>(dx)}, shape.rows, shape.n,
        {data<float>(partials), data<float>(d_bias)}));
    return {dx, d_bias, at::Tensor()};
  }
};

// The same factors forward and backward, so nothing has to be stored.
template <typename T>
struct DropoutFunction : torch::autograd::Function<DropoutFunction<T>> {
  using Kernels = LayerKernelsOf<T>;

  static at::Tensor apply_rule(Kernels& kernels, const at::Tensor& x,
                               const cuda::DropoutStream& stream, double p) {
    at::Tensor y = at::empty_like(x);
    check(kernels.dropout(
        {data<T>(x), data<T>(y), static_cast<uint64_t>(x.numel()), stream, cuda::dropout_rule(p)}));
    return y;
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const cuda::DropoutStream& stream, double p, Kernels* kernels) {
    ctx->saved_data["slot_key"] = reinterpret_cast<int64_t>(stream.slot_key);
    ctx->saved_data["layer"] = static_cast<int64_t>(stream.layer);
    ctx->saved_data["p"] = p;
    keep(ctx, kernels);
    return apply_rule(*kernels, x, stream, p);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const cuda::DropoutStream stream{
        // NOLINTNEXTLINE(performance-no-int-to-ptr): as forward() put it there
        reinterpret_cast<const uint64_t*>(ctx->saved_data["slot_key"].toInt()),
        static_cast<uint64_t>(ctx->saved_data["layer"].toInt())};
    return {apply_rule(kept<Kernels>(ctx), gradients[0].contiguous(), stream,
                       ctx->saved_data["p"].toDouble()),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// The first `width` columns of logits whose rows are wider. Their gradient may lie in their place
// (CrossEntropy), zeros beyond it: then it is whole already.
struct UnpadFunction : torch::autograd::Function<UnpadFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& padded, int64_t width) {
    ctx->saved_data["padded"] = padded.size(-1);
    ctx->saved_data["place"] = reinterpret_cast<int64_t>(padded.const_data_ptr());
    return at::narrow(padded, -1, 0, width);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor& gradient = gradients[0];
    const int64_t padded = ctx->saved_data["padded"].toInt();
    std::vector<int64_t> shape = gradient.sizes().vec();
    const int64_t beyond = padded - std::exchange(shape.back(), padded);
    // The place alone does not tell: if the logits are gone, another tensor may lie there.
    const bool in_place =
        reinterpret_cast<int64_t>(gradient.const_data_ptr()) == ctx->saved_data["place"].toInt() &&
        gradient.stride(-2) == padded;
    return {in_place ? at::as_strided(gradient, shape, gradient.strides())
                     : at::constant_pad_nd(gradient, {0, beyond}),
            at::Tensor()};
  }
};

// The type in which the next linear layer computes. The stream is kept in this type.
at::ScalarType stream_type(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                   : x.scalar_type();
}

}  // namespace

Normed add_and_norm(const Forward& f, const at::Tensor& x, const at::Tensor& branch,
                    uint32_t weight) {
  const at::ScalarType type = stream_type(x);
  Normed result;
  const auto run = [&]<typename T>(LayerKernelsOf<T>& kernels) {
    const at::Tensor from = x.to(type).contiguous();
    std::optional<at::Tensor> added;
    if (branch.defined()) added = branch.to(type).contiguous();
    const variable_list outputs = NormFunction<T>::apply(from, added, f.parameters[weight],
                                                         f.parameters[weight + 1], &kernels);
    result = {branch.defined() ? outputs[1] : from, outputs[0]};
  };
  if (with_kernels(f, type, run)) return result;
  const at::Tensor stream = branch.defined() ? at::add(x, branch) : x;
  return {stream, layer_norm(f, stream, weight)};
}

at::Tensor linear_gelu(const Forward& f, const at::Tensor& x, uint32_t weight) {
  at::Tensor result;
  const auto run = [&]<typename T>(LayerKernelsOf<T>& kernels) {
    const at::Tensor product = linear_product(f, x, weight);
    result = BiasGeluFunction<T>::apply(product.contiguous(), f.parameters[weight + 1], &kernels);
  };
  if (with_kernels(f, stream_type(x), run)) return result;
  return at::gelu(linear(f, x, weight), "tanh");
}

at::Tensor tied_logits(const Forward& f, const at::Tensor& x, const at::Tensor& embedding) {
  const int64_t vocabulary = embedding.size(0);
  const int64_t beyond = (kVocabularyStep - vocabulary % kVocabularyStep) % kVocabularyStep;
  const at::ScalarType type = stream_type(x);
  at::Tensor result;
  const auto run = [&](auto&) {
    const at::Tensor wider = at::constant_pad_nd(embedding.to(type), {0, 0, 0, beyond});
    result = UnpadFunction::apply(at::linear(x, wider), vocabulary);
  };
  if (beyond > 0 && with_kernels(f, type, run)) return result;
  return at::linear(x, embedding);
}

at::Tensor dropout(const Forward& f, const at::Tensor& x, double p, uint32_t layer) {
  if (!f.mode.training || p == 0) return x;
  at::Tensor result;
  const auto run = [&]<typename T>(LayerKernelsOf<T>& kernels) {
    TORCH_CHECK(f.mode.dropout_key_at != nullptr, "no key where kernels could read it");
    result = DropoutFunction<T>::apply(
        x.contiguous(), cuda::DropoutStream{f.mode.dropout_key_at, layer}, p, &kernels);
  };
  if (with_kernels(f, x.scalar_type(), run)) return result;
  const auto options = x.options().dtype(at::kFloat).device(at::kCPU).requires_grad(false);
  at::Tensor mask = at::empty_like(x, options);
  const uint64_t key = cuda::dropout_key(f.mode.dropout_key, layer);
  fill_dropout_mask(key, p, mask.data_ptr<float>(), static_cast<uint64_t>(mask.numel()));
  return at::mul(x, mask.to(x.device(), x.scalar_type()));
}

}  // namespace lockstep
