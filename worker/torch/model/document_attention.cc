#include "worker/torch/model/document_attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace lockstep {

uint32_t most_documents(const data::SampleShape& shape, const void* inputs, uint64_t samples) {
  if (!shape.has_positions) return 0;
  const auto* values = static_cast<const int64_t*>(inputs);
  uint64_t found = 0;
  for (uint64_t row = 0; row < samples; ++row) {
    const int64_t* position = values + (2 * row + 1) * shape.tokens;
    ++found;
    for (uint32_t place = 1; place < shape.tokens; ++place) found += position[place] == 0 ? 1 : 0;
  }
  return static_cast<uint32_t>(std::bit_ceil(std::max<uint64_t>(found, kLeastDocuments)));
}

at::Tensor begins_of_documents(const at::Tensor& position, uint32_t most) {
  at::Tensor is_begin = position.eq(0);
  is_begin.select(1, 0).fill_(true);
  const at::Tensor document = is_begin.flatten().cumsum(0);  // from 1
  const at::Tensor wanted =
      at::arange(1, static_cast<int64_t>(most) + 2, document.options());  // from 1, and one more
  // The number of places before a document is where it begins.
  return at::searchsorted(document, wanted, /*out_int32=*/true);
}

at::Tensor mask_of_documents(const at::Tensor& position, const at::Tensor& query) {
  const at::Tensor document = position.eq(0).cumsum(1);  // (B, T)
  const at::Tensor same = document.unsqueeze(1).eq(document.unsqueeze(2));
  const at::Tensor place = at::arange(position.size(1), position.options());
  const at::Tensor seen = same.logical_and(place.unsqueeze(1).ge(place)).unsqueeze(1);
  return at::zeros(seen.sizes(), query.options().requires_grad(false))
      .masked_fill_(seen.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace lockstep
