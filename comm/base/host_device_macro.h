// LOCKSTEP_HOST_DEVICE before an inline function compiles it for the CPU and, under nvcc, for the
// GPU. So tests run on the CPU the arithmetic that kernels run on the device.
#pragma once

#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HOST_DEVICE [[gnu::always_inline]] inline
#endif
