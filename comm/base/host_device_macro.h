// LOCKSTEP_HOST_DEVICE before an inline function: arithmetic that runs on the CPU and, compiled by
// nvcc, on the GPU. Tests execute on the CPU what kernels execute on the device.
#pragma once

#if defined(__CUDACC__)
#define LOCKSTEP_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HOST_DEVICE [[gnu::always_inline]] inline
#endif
