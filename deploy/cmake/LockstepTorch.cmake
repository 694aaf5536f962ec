# Target lockstep::torch: LibTorch, linked directly.
#
# The wheel's own CMake package is not used: it wants a CUDA toolkit and, with CMake 3.25,
# TORCH_CUDA_ARCH_LIST. Linking libtorch_cpu.so and libc10.so needs neither, and a program linked
# so starts in a quarter of a second and stays able to load libtorch_cuda.so later.
#
# Where it is looked for, first hit wins: Torch_DIR (…/share/cmake/Torch), CMAKE_PREFIX_PATH,
# LOCKSTEP_TORCH_ROOT (the directory that holds include/ and lib/), the private wheel of
# deploy/install_deps.sh.
set(lockstep_torch_candidates "")
foreach(dir ${Torch_DIR} $ENV{Torch_DIR})
  list(APPEND lockstep_torch_candidates ${dir}/../../..)
endforeach()
string(REPLACE ":" ";" lockstep_prefix_env "$ENV{CMAKE_PREFIX_PATH}")
foreach(prefix ${CMAKE_PREFIX_PATH} ${lockstep_prefix_env})
  list(APPEND lockstep_torch_candidates ${prefix} ${prefix}/../..)
endforeach()
list(APPEND lockstep_torch_candidates ${LOCKSTEP_TORCH_ROOT} $ENV{LOCKSTEP_TORCH_ROOT})
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/deploy/install_deps.sh --print-torch-root
                OUTPUT_VARIABLE lockstep_private_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND lockstep_torch_candidates ${lockstep_private_torch})

foreach(root ${lockstep_torch_candidates})
  if(NOT LOCKSTEP_TORCH_FOUND AND EXISTS ${root}/lib/libtorch_cpu.so
     AND EXISTS ${root}/include/ATen/ATen.h)
    get_filename_component(LOCKSTEP_TORCH_FOUND ${root} REALPATH)
  endif()
endforeach()
if(NOT LOCKSTEP_TORCH_FOUND)
  lockstep_missing("LibTorch")
endif()
set(LOCKSTEP_TORCH_VERSION "")
set(lockstep_torch_version_h ${LOCKSTEP_TORCH_FOUND}/include/torch/headeronly/version.h)
if(NOT EXISTS ${lockstep_torch_version_h})  # before 2.8
  set(lockstep_torch_version_h
      ${LOCKSTEP_TORCH_FOUND}/include/torch/csrc/api/include/torch/version.h)
endif()
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${lockstep_torch_version_h} line REGEX "^#define TORCH_VERSION_${part} ")
  string(REGEX REPLACE ".* ([0-9]+)$" ".\\1" number "${line}")
  string(APPEND LOCKSTEP_TORCH_VERSION "${number}")
endforeach()
string(SUBSTRING "${LOCKSTEP_TORCH_VERSION}" 1 -1 LOCKSTEP_TORCH_VERSION)
message(STATUS "LibTorch ${LOCKSTEP_TORCH_VERSION}: ${LOCKSTEP_TORCH_FOUND}")

# The wheel also carries headers of the protobuf, fmt and others it was built with, which must not
# hide the system's: only its own are let through.
set(lockstep_torch_headers ${CMAKE_BINARY_DIR}/torch_headers)
file(REMOVE_RECURSE ${lockstep_torch_headers})
file(MAKE_DIRECTORY ${lockstep_torch_headers})
foreach(part ATen c10 caffe2 torch)
  file(CREATE_LINK ${LOCKSTEP_TORCH_FOUND}/include/${part} ${lockstep_torch_headers}/${part}
       SYMBOLIC)
endforeach()

add_library(lockstep::torch INTERFACE IMPORTED)
target_include_directories(lockstep::torch SYSTEM INTERFACE ${lockstep_torch_headers})
target_link_libraries(lockstep::torch INTERFACE
  ${LOCKSTEP_TORCH_FOUND}/lib/libtorch_cpu.so ${LOCKSTEP_TORCH_FOUND}/lib/libc10.so)
# libtorch_cpu.so itself wants CUDA runtime libraries, which its own RPATH finds at run time.
target_link_options(lockstep::torch INTERFACE -Wl,--allow-shlib-undefined
  -Wl,-rpath,${LOCKSTEP_TORCH_FOUND}/lib)
