#include "worker/engine/sample_loss.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

namespace lockstep {
namespace {

// Of each element.
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

}  // namespace

void add_losses(LossKind kind, const at::Tensor& labels, ModelOutput* output) {
  const at::Tensor out = output->logits.to(at::kFloat).flatten(1);
  const at::Tensor target = labels.to(at::kFloat).view({-1, 1}).expand_as(out);
  output->losses = element_losses(kind, out, target).mean(1);
  if (kind == LossKind::kBce)
    output->right = (out.detach() > 0).eq(target > 0.5).to(at::kFloat).mean(1).floor();
}

}  // namespace lockstep
