#include "worker/torch/device/flash_attention.h"

#include <ATen/ops/_flash_attention_forward.h>

namespace lockstep {

at::Tensor FlashAttention::attend(const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value, const at::Tensor& begins,
                                  int64_t longest) const {
  return std::get<0>(at::_flash_attention_forward(query, key, value, begins, begins, longest,
                                                  longest, /*dropout_p=*/0.0, /*is_causal=*/true,
                                                  /*return_debug_mask=*/false));
}

}  // namespace lockstep
