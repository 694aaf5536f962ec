# Library lockstep_build_info (comm/base/build_info.h): version, revision, compiler, dependencies.
#
# Its source is written at every build, and only touched when a value has changed, so that nothing
# is compiled or linked again without need. LOCKSTEP_CUDA_VERSION and LOCKSTEP_TORCH_VERSION come
# from LockstepDependencies.
set(lockstep_build_type "${CMAKE_BUILD_TYPE}")
if(LOCKSTEP_SANITIZE)
  string(REPLACE "," "+" lockstep_sanitizers "${LOCKSTEP_SANITIZE}")
  string(APPEND lockstep_build_type " with ${lockstep_sanitizers}")
endif()
foreach(dependency TORCH CUDA)
  if(NOT LOCKSTEP_${dependency}_VERSION)
    set(LOCKSTEP_${dependency}_VERSION none)
  endif()
endforeach()

find_package(Git QUIET)
set(lockstep_build_info_source ${CMAKE_BINARY_DIR}/generated/build_info.cc)
set(lockstep_write_build_info
  ${CMAKE_COMMAND} -D GIT=${GIT_EXECUTABLE} -D SOURCE=${CMAKE_SOURCE_DIR}
  -D OUTPUT=${lockstep_build_info_source} -D VERSION=${PROJECT_VERSION}
  -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
  -D "BUILD_TYPE=${lockstep_build_type}" -D TORCH=${LOCKSTEP_TORCH_VERSION}
  -D CUDA=${LOCKSTEP_CUDA_VERSION} -P ${CMAKE_CURRENT_LIST_DIR}/write_build_info.cmake)
add_custom_target(lockstep_write_build_info
  COMMAND ${lockstep_write_build_info} BYPRODUCTS ${lockstep_build_info_source}
  COMMENT "" VERBATIM)

add_library(lockstep_build_info STATIC ${lockstep_build_info_source})
add_dependencies(lockstep_build_info lockstep_write_build_info)
lockstep_our_code(lockstep_build_info)
target_sources(lockstep_build_info PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}
               FILES ${CMAKE_SOURCE_DIR}/comm/base/build_info.h)
