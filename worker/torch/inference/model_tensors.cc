#include "worker/torch/inference/model_tensors.h"

#include <ATen/ops/empty.h>

#include "worker/model/weights/load_weights.h"

namespace lockstep {
namespace {

StateTensor state_of(StateSection section, const std::string& name, const at::Tensor& tensor,
                     DType dtype) {
  return {
      section,        name, dtype, tensor.sizes().vec(), static_cast<std::byte*>(tensor.data_ptr()),
      tensor.nbytes()};
}

}  // namespace

Result<ModelTensors> load_model_tensors(const std::string& path, const wire::ModelSpec& model,
                                        const ModelLayout& layout) {
  ModelTensors made;
  std::vector<StateTensor> state;
  for (const ParameterSpec& spec : layout.parameters) {
    made.parameters.push_back(at::empty(spec.shape, at::kFloat));
    state.push_back(
        state_of(StateSection::kParameter, spec.name, made.parameters.back(), DType::kF32));
  }
  for (const BufferSpec& spec : layout.buffers) {
    made.buffers.push_back(at::empty({spec.size}, at::kFloat));
    state.push_back(state_of(StateSection::kBuffer, spec.name, made.buffers.back(), DType::kF32));
  }
  std::vector<at::Tensor> counters;
  for (const StepCounterSpec& spec : layout.step_counters) {
    counters.push_back(at::empty({}, at::kLong));
    state.push_back(state_of(StateSection::kBuffer, spec.name, counters.back(), DType::kI64));
  }
  LOCKSTEP_RETURN_IF_ERROR(load_own_weights(path, model, state));
  for (const at::Tensor& counter : counters) made.counters.push_back(counter.item<int64_t>());
  return made;
}

}  // namespace lockstep
