#include "worker/torch/engine/sample_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

#include "comm/base/labels.h"

namespace lockstep {
namespace {

// The loss of each element.
at::Tensor element_losses(LossKind kind, const at::Tensor& out, const at::Tensor& target) {
  switch (kind) {
    case LossKind::kBce:
      return at::binary_cross_entropy_with_logits(out, target, {}, {}, at::Reduction::None);
    case LossKind::kL1:
      return at::l1_loss(out, target, at::Reduction::None);
    case LossKind::kHuber:
      return at::huber_loss(out, target, at::Reduction::None, /*delta=*/1);
    case LossKind::kCrossEntropy:
    case LossKind::kMse:
      break;
  }
  return at::mse_loss(out, target, at::Reduction::None);
}

void add_cross_entropy(const at::Tensor& labels, double label_smoothing, ModelOutput* output) {
  output->losses = at::cross_entropy_loss(output->logits.to(at::kFloat), labels, {},
                                          at::Reduction::None, kIgnoredLabel, label_smoothing);
  output->right = output->logits.detach().argmax(1).eq(labels).to(at::kFloat);
}

void add_losses(LossKind kind, const at::Tensor& target, double label_smoothing,
                ModelOutput* output) {
  if (kind == LossKind::kCrossEntropy) return add_cross_entropy(target, label_smoothing, output);
  const at::Tensor out = output->logits.to(at::kFloat).flatten(1);
  const at::Tensor wanted = target.to(at::kFloat).reshape({out.size(0), -1}).expand_as(out);
  output->losses = element_losses(kind, out, wanted).mean(1);
  if (kind == LossKind::kBce)
    output->right = (out.detach() > 0).eq(wanted > 0.5).to(at::kFloat).mean(1).floor();
}

}  // namespace

void finish_losses(LossKind kind, bool is_own_loss, const FieldTensors& fields,
                   const at::Tensor& labels, double label_smoothing, ModelOutput* output) {
  if (!is_own_loss && (kind != LossKind::kCrossEntropy || fields.weight.defined()))
    add_losses(kind, fields.target.defined() ? fields.target : labels, label_smoothing, output);
  if (fields.weight.defined()) output->losses = output->losses * fields.weight;
}

}  // namespace lockstep
