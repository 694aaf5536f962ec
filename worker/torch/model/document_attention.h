// Keeps several documents in a sequence apart in attention.
//
//   mask    a matrix of (T, T) numbers for each sequence, added to the scores; everywhere
//   varlen  the places where documents begin; for devices whose kernels take these
//   (VarlenAttention)
//
// LibTorch's kernels for masks on a GPU compute in fp32, keep the scores of each layer until
// backward, or add in any order. Varlen kernels do none of this, and skip places that the mask
// hides.
//
// Thread-safety: free functions without state. VarlenAttention: any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "data/dataset/sample_shape.h"

namespace lockstep {

// Attention over sequences that lie one after the other. Differentiable.
class VarlenAttention {
 public:
  virtual ~VarlenAttention() = default;

  // Whether there are kernels for queries of this type, with heads of this width.
  virtual bool takes(at::ScalarType type, int64_t width) const = 0;

  // Causal attention. `query`, `key`, `value`: (places, heads, width). `begins`: (n + 1) int32 on
  // their device: sequence i has the places [begins[i], begins[i + 1]), at most `longest` of them.
  // A sequence may be empty. -> (places, heads, width)
  virtual at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& begins, int64_t longest) const = 0;
};

// A bound for the number of documents in a batch, from its inputs in the host's memory; 0 for
// samples without positions. The bound depends on the batch alone, and few batches of a run have
// different ones: a power of two, at least kLeastDocuments. The bits do not depend on it: from
// there on flash attention adds the gradients of queries in one piece, however many sequences there
// are.
inline constexpr uint32_t kLeastDocuments = 256;
uint32_t most_documents(const data::SampleShape& shape, const void* inputs, uint64_t samples);

// Returns the begins of the documents, (most + 1) int32; entries after the last document are B * T.
// `position`: (B, T), the place of each token in its document. A document begins where it is 0, and
// with each row. REQUIRES: at most `most` documents. Waits for nothing.
at::Tensor begins_of_documents(const at::Tensor& position, uint32_t most);

// The mask as numbers to add to the scores of queries like this one, (B, 1, T, T): 0 where
// something is seen, minus infinity where not. Every position sees itself and those before it in
// its document.
at::Tensor mask_of_documents(const at::Tensor& position, const at::Tensor& query);

}  // namespace lockstep
