# Compiler, linker and cache settings for all of our code.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)  # target all_verify_interface_header_sets
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# What one clone has compiled, another one need not: paths below the sources are taken relative to
# the build directory. The sloppiness is for precompiled headers, of which nothing is kept without;
# a sum stands for each of them (compile_headers.sh).
find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      ${LOCKSTEP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
# Debuggers find the sources from the root of a clone.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.>")

find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Bits must not depend on what the compiler contracts: a*b+c is two roundings everywhere.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off;-fno-omit-frame-pointer>")

if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Of precompiled headers, which would differ at every build.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()

# Warnings as errors, for our targets only (see lockstep_library).
set(LOCKSTEP_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wunused -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these in optimised and in sanitizer builds.
  list(APPEND LOCKSTEP_WARNINGS -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
       -Wno-array-bounds)
endif()
