#include "worker/torch/engine/top_classes.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>

namespace lockstep {

uint64_t count_in_top(const at::Tensor& logits, const int64_t* labels) {
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)});
  const at::Tensor label =
      at::from_blob(const_cast<int64_t*>(labels), {rows.size(0), 1}, at::kLong).to(rows.device());
  const at::Tensor sought = rows.gather(1, label.clamp_min(0));
  const at::Tensor classes = at::arange(rows.size(1), label.options());
  const at::Tensor is_tied_before = rows.eq(sought).logical_and(classes.lt(label));
  const at::Tensor is_before = rows.le(sought).logical_not().logical_or(is_tied_before);
  const at::Tensor is_in_top = is_before.sum(1).lt(kTopClasses).logical_and(label.squeeze(1).ge(0));
  return static_cast<uint64_t>(is_in_top.sum().item<int64_t>());
}

}  // namespace lockstep
