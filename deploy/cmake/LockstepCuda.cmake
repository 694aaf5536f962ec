# The CUDA language: nvcc 13 for every architecture that is served, with the toolkit that was found.
#
# 80: A100 · 90: H100, H200 · 100: B200, and as PTX whatever comes after it.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime with LibTorch's
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(LOCKSTEP_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2")
# Random numbers (comm/base/prng.h) are constexpr functions of the host and of kernels.
string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")

# CMake 3.25 does not know that nvcc has C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_STANDARD 20)

# Only NCCL's header: the library is opened where there is a GPU.
find_path(LOCKSTEP_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT LOCKSTEP_NCCL_INCLUDE_DIR)
  message(FATAL_ERROR "No nccl.h was found, and this build asks for the GPU module. Install NCCL "
    "2.27 or newer, or set LOCKSTEP_NCCL_INCLUDE_DIR.")
endif()

# The CPU's bits: no contraction, divisions and roots rounded as IEEE says, denormals kept.
set(lockstep_cuda_options -fmad=false -prec-div=true -prec-sqrt=true -ftz=false
    -Xcompiler=-ffp-contract=off)
# nvcc compresses fat binaries by default. A test reads which kernels they hold (tests/cuda), and needs
# them uncompressed.
option(LOCKSTEP_CUDA_COMPRESS "Compress the kernels: smaller programs, whose kernels no test reads" OFF)
if(NOT LOCKSTEP_CUDA_COMPRESS)
  list(APPEND lockstep_cuda_options --no-compress)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${lockstep_cuda_options}>")
set(LOCKSTEP_CUDA_WARNINGS -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror)
