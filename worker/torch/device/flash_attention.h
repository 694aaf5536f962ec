// LibTorch's flash attention over packed documents, on NVIDIA GPUs. Its backward is deterministic
// where LibTorch is told to be (open_gpu.cc). It waits for nothing, so a slot with it can be
// recorded. Compiled everywhere, not yet run on a GPU.
//
// Errors: throws c10::Error, as LibTorch's operators do. Thread-safety: any thread.
#pragma once

#include "worker/torch/model/document_attention.h"

namespace lockstep {

class FlashAttention final : public VarlenAttention {
 public:
  bool takes(at::ScalarType type, int64_t width) const override {
    return (type == at::kBFloat16 || type == at::kHalf) && width % 8 == 0 && width <= 256;
  }
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& begins, int64_t longest) const override;
};

}  // namespace lockstep
