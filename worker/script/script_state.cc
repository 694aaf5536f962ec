#include "worker/script/script_state.h"

#include <iterator>
#include <string>

namespace lockstep {

Result<std::vector<StateTensor>> state_of(const ls_reply& reply) {
  std::vector<StateTensor> state;
  for (const ls_tensor& t : std::span(reply.tensors, reply.tensor_count)) {
    if (t.dtype >= std::size(kDTypes) || t.section > static_cast<uint8_t>(StateSection::kOptimizer))
      return Status(Code::kInternal, std::string("the state's tensor ") + t.name +
                                         " has no type or section that there is");
    state.push_back({.section = static_cast<StateSection>(t.section),
                     .name = t.name,
                     .dtype = static_cast<DType>(t.dtype),
                     .shape = {t.shape, t.shape + t.dims},
                     .data = static_cast<std::byte*>(t.data),
                     .bytes = t.bytes});
  }
  return state;
}

std::vector<ls_tensor> tensors_of(std::span<const StateTensor> state) {
  std::vector<ls_tensor> tensors;
  for (const StateTensor& t : state)
    tensors.push_back({.name = t.name.c_str(),
                       .shape = t.shape.data(),
                       .data = t.data,
                       .bytes = t.bytes,
                       .dims = static_cast<uint32_t>(t.shape.size()),
                       .section = static_cast<uint8_t>(t.section),
                       .dtype = static_cast<uint8_t>(t.dtype),
                       .is_late = 0});
  return tensors;
}

}  // namespace lockstep
