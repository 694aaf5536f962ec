// Kernels need nvcc's runtime and a GPU. If the module runs on a stand-in for CUDA's runtime, its
// launches only return an error that says so.
#include "worker/cuda/kernels/apply_launch.h"
#include "worker/cuda/kernels/layer_launch.h"
#include "worker/cuda/kernels/merge_launch.h"

namespace lockstep::cuda {
namespace {

Status none() {
  return {Code::kInternal, "the stand-in for CUDA has no kernels"};
}

}  // namespace

Status launch_images(const ImageWork&, cudaStream_t) {
  return none();
}
Status launch_add(float*, const float*, uint64_t, cudaStream_t) {
  return none();
}
Status launch_block_totals(const TotalsWork&, cudaStream_t) {
  return none();
}
Status launch_decide(ApplyState*, const StepRule&, const BlockTotals*, uint32_t, const float*,
                     cudaStream_t) {
  return none();
}
Status launch_update(const StepVerdict*, const UpdateChunk*, uint32_t, const UpdateBuffers&,
                     const UpdateFactors&, bool, cudaStream_t) {
  return none();
}
Status launch_average(const StepVerdict*, const float*, uint64_t, float, float*, cudaStream_t) {
  return none();
}
Status launch_statistics(const StepVerdict*, const float*, uint64_t, uint32_t, float*,
                         cudaStream_t) {
  return none();
}
Status launch_fp8_cast(const Fp8Cast&, cudaStream_t) {
  return none();
}

template <typename T>
Status launch_layer_norm(const LayerNormForward<T>&, uint32_t, uint32_t, cudaStream_t) {
  return none();
}
template <typename T>
Status launch_layer_norm_backward(const LayerNormBackward<T>&, uint32_t, uint32_t,
                                  const NormGradients&, cudaStream_t) {
  return none();
}
template <typename T>
Status launch_bias_gelu(const BiasGelu<T>&, uint32_t, uint32_t, cudaStream_t) {
  return none();
}
template <typename T>
Status launch_bias_gelu_backward(const BiasGeluBackward<T>&, uint32_t, uint32_t,
                                 const BiasGradient&, cudaStream_t) {
  return none();
}
template <typename T>
Status launch_dropout(const DropoutWork<T>&, cudaStream_t) {
  return none();
}
template <typename T>
Status launch_cross_entropy(const CrossEntropy<T>&, uint32_t, cudaStream_t) {
  return none();
}

#define LOCKSTEP_NO_KERNELS_OF(T)                                                                  \
  template Status launch_layer_norm(const LayerNormForward<T>&, uint32_t, uint32_t, cudaStream_t); \
  template Status launch_layer_norm_backward(const LayerNormBackward<T>&, uint32_t, uint32_t,      \
                                             const NormGradients&, cudaStream_t);                  \
  template Status launch_bias_gelu(const BiasGelu<T>&, uint32_t, uint32_t, cudaStream_t);          \
  template Status launch_bias_gelu_backward(const BiasGeluBackward<T>&, uint32_t, uint32_t,        \
                                            const BiasGradient&, cudaStream_t);                    \
  template Status launch_dropout(const DropoutWork<T>&, cudaStream_t);                             \
  template Status launch_cross_entropy(const CrossEntropy<T>&, uint32_t, cudaStream_t);
LOCKSTEP_NO_KERNELS_OF(float)
LOCKSTEP_NO_KERNELS_OF(Bf16)
#undef LOCKSTEP_NO_KERNELS_OF

}  // namespace lockstep::cuda
