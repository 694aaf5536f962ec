# lockstep_library(NAME [ROOMS ...] [SOURCES ...] [HEADERS ...] [DEPS ...] [ALONE ...]): one role, one
#   static library lockstep_NAME. ROOMS: folders all of whose *.cc and *.h belong to it ("." is the
#   calling one); SOURCES and HEADERS name single files, in folders that several libraries share.
#   Headers must compile on their own: where NAME.cc includes NAME.h first, compiling it shows that;
#   the others are compiled for it by all_verify_interface_header_sets.
#   ALONE: lockstep_compile_together.
# lockstep_program(NAME SOURCES ... DEPS ...): an executable build/<preset>/bin/NAME.
# lockstep_test(NAME SOURCES ... DEPS ... [LABELS ...] [SINGLE_THREADED] [RELEASE] [ALONE ...]): a
#   GoogleTest program; each TEST is a ctest. ALONE: lockstep_compile_together. SINGLE_THREADED: it
#   never starts a thread, so ThreadSanitizer has nothing to find and its build leaves it out; the
#   release build ends it if it starts one after all. RELEASE: bits of optimised code are its point, or
#   a sanitizer leaves something out. A unit test without LibTorch that is neither is for the sanitizers'
#   tier: the release build makes it only by name, and its ctests there have the label sanitized.
# lockstep_only_compiled(NAME SOURCES ... DEPS ... [TOGETHER]): compiles the sources of programs that
#   this build leaves out, as fast as can be, so that they do not rot. TOGETHER: as one.
# lockstep_fuzz(NAME SOURCES ... DEPS ...): a libFuzzer program build/<preset>/fuzz/fuzz_NAME, part of
#   the target fuzz_targets. tests/run.sh starts it with the inputs of tests/fuzz/corpus/NAME.
if(LOCKSTEP_FUZZ)
  add_custom_target(fuzz_targets)
endif()

# What sources include and no one has written: what clang-tidy needs beside them.
add_custom_target(generated_headers)

# The programs of lockstep_test with label unit: what a sanitizer build needs.
if(LOCKSTEP_TESTS)
  add_custom_target(test_programs)
endif()

function(lockstep_our_code target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:C,CXX>:${LOCKSTEP_WARNINGS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${LOCKSTEP_CUDA_WARNINGS}>")
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
endfunction()

# Nearly all of a sanitizer build is compiling, and half of that is reading the same headers: there
# they are read once (comm/wire/CMakeLists.txt has the list). Other builds go without, so that a
# missing include is an error. lockstep_base is what the list itself is made with.
function(lockstep_read_headers_once target list)
  if(TARGET ${list} AND NOT target STREQUAL "lockstep_base")
    target_precompile_headers(${target} REUSE_FROM ${list})
  endif()
endfunction()

# lockstep_compile_together(target ALONE): several sources are compiled as one, in a quarter of the time
#   of single ones, which read the same headers again and again (the preset dev leaves them single).
#   ALONE: sources that have a name which another one has too.
function(lockstep_compile_together target)
  if(LOCKSTEP_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# lockstep_shown_by(out header sources): whether one of sources includes header before all others,
#   at the time of configuring.
function(lockstep_shown_by out header sources)
  string(REGEX REPLACE "\\.h$" ".cc" source ${header})
  set(${out} OFF PARENT_SCOPE)
  if(source IN_LIST sources)
    file(STRINGS ${source} first REGEX "^#include " LIMIT_COUNT 1)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    if(first STREQUAL "#include \"${path}\"")
      set(${out} ON PARENT_SCOPE)
    endif()
  endif()
endfunction()

# lockstep_tell_fuzzers(target): its code tells a fuzzer what an input has reached. What only calls the
# libraries goes without: without optimisation that would be a third of its compiling.
function(lockstep_tell_fuzzers target)
  if(LOCKSTEP_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "ROOMS;SOURCES;HEADERS;DEPS;ALONE" ${ARGN})
  foreach(room ${ARG_ROOMS})
    file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
         ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cc)
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
         ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.h)
    list(APPEND ARG_SOURCES ${sources})
    list(APPEND ARG_HEADERS ${headers})
  endforeach()
  add_library(lockstep_${name} STATIC ${ARG_SOURCES})
  lockstep_tell_fuzzers(lockstep_${name})
  lockstep_our_code(lockstep_${name})
  set(to_show ${ARG_HEADERS})
  foreach(header ${ARG_HEADERS})
    lockstep_shown_by(shown ${header} "${ARG_SOURCES}")
    if(shown)
      list(REMOVE_ITEM to_show ${header})
    endif()
  endforeach()
  target_sources(lockstep_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}
                 FILES ${ARG_HEADERS})
  target_sources(lockstep_${name} INTERFACE FILE_SET to_show TYPE HEADERS
                 BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${to_show})
  if(to_show)
    set_target_properties(lockstep_${name} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY to_show)
  else()
    set_target_properties(lockstep_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
  endif()
  target_link_libraries(lockstep_${name} PUBLIC ${ARG_DEPS})
  lockstep_read_headers_once(lockstep_${name} lockstep_headers)
  lockstep_compile_together(lockstep_${name} ${ARG_ALONE})
endfunction()

function(lockstep_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  lockstep_our_code(${name})
  lockstep_compile_together(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

function(lockstep_only_compiled name)
  cmake_parse_arguments(ARG "TOGETHER" "" "SOURCES;DEPS" ${ARGN})
  add_library(lockstep_${name} OBJECT ${ARG_SOURCES})
  lockstep_our_code(lockstep_${name})
  if(ARG_TOGETHER)
    lockstep_compile_together(lockstep_${name})
  endif()
  target_compile_options(lockstep_${name} PRIVATE -O0 -g0)
  target_link_libraries(lockstep_${name} PRIVATE ${ARG_DEPS})
endfunction()

function(lockstep_test name)
  if(NOT LOCKSTEP_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SINGLE_THREADED;RELEASE" "" "SOURCES;DEPS;LABELS;ALONE" ${ARGN})
  if(ARG_SINGLE_THREADED AND LOCKSTEP_SANITIZE MATCHES "thread")
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(test_${name} ${ARG_SOURCES})
  lockstep_our_code(test_${name})
  lockstep_compile_together(test_${name} ${ARG_ALONE})
  # What is tested is optimised; the tests themselves only have to compile fast.
  target_compile_options(test_${name} PRIVATE -O0)
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main
                        lockstep::rapidcheck)
  lockstep_read_headers_once(test_${name} lockstep_test_headers)
  if(ARG_SINGLE_THREADED AND NOT LOCKSTEP_SANITIZE)
    target_sources(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/no_threads.cc)
  endif()
  if(LOCKSTEP_SANITIZE)
    target_sources(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/sanitizer_options.cc)
  endif()
  set_target_properties(test_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  lockstep_libraries_of(libraries test_${name})
  if(unit IN_LIST ARG_LABELS AND LOCKSTEP_SANITIZE)
    add_dependencies(test_programs test_${name})
    lockstep_note_folders(test_${name} "${libraries}")
  elseif(unit IN_LIST ARG_LABELS AND LOCKSTEP_TORCH AND NOT ARG_RELEASE AND NOT ARG_SINGLE_THREADED
         AND NOT "lockstep::torch" IN_LIST libraries)
    set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    set(ARG_LABELS sanitized)
  endif()
  lockstep_test_in_parts(test_${name} "${ARG_LABELS}")
endfunction()

# lockstep_libraries_of(out target): all targets that it links, directly or not.
function(lockstep_libraries_of out target)
  set(found "")
  set(left ${target})
  while(left)
    list(POP_FRONT left one)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" one "${one}")
    if(TARGET ${one} AND NOT one IN_LIST found)
      list(APPEND found ${one})
      foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
        get_target_property(more ${one} ${property})
        if(more)
          list(APPEND left ${more})
        endif()
      endforeach()
    endif()
  endwhile()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# lockstep_note_folders(program targets): a line "PROGRAM FOLDER..." in test_folders.txt of the build
# directory. tests/run.sh finds there which programs a change touches.
function(lockstep_note_folders program targets)
  get_property(is_begun GLOBAL PROPERTY lockstep_folders_are_noted)
  if(NOT is_begun)
    set_property(GLOBAL PROPERTY lockstep_folders_are_noted ON)
    file(WRITE ${CMAKE_BINARY_DIR}/test_folders.txt "")
  endif()
  set(folders "")
  foreach(target ${targets})
    get_target_property(place ${target} SOURCE_DIR)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "^\\$<")
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${place} NORMALIZE)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${folder} is_ours)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
      if(is_ours)
        list(APPEND folders ${folder})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(JOIN folders " " folders)
  file(APPEND ${CMAKE_BINARY_DIR}/test_folders.txt "${program} ${folders}\n")
endfunction()

# A program runs a quarter of its tests at a time and not one: what starts slowly, with LibTorch or
# under a sanitizer, starts four times. tests/harness/ctest_report.py counts the single tests.
function(lockstep_test_in_parts program labels)
  set(parts 4)
  foreach(part RANGE 1 ${parts})
    math(EXPR index "${part} - 1")
    add_test(NAME ${program}.${part} COMMAND ${program})
    set_tests_properties(${program}.${part} PROPERTIES LABELS "${labels}" TIMEOUT 600
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

function(lockstep_fuzz name)
  if(NOT LOCKSTEP_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  lockstep_tell_fuzzers(fuzz_${name})
  lockstep_our_code(fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets fuzz_${name})
  set_target_properties(fuzz_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()

# Tests in Python with real processes, one ctest per file. They need the worker, so Torch.
#
#   lockstep_python_tests(LABEL [FIRST names ...] [SERIAL names ...] [NIGHT names ...]): every
#     *_test.py of the calling folder; it is told as skipped if one of its tests was. Several run at a
#     time. FIRST: the long ones, so that none is left for the end. SERIAL: those that measure, beside
#     which nothing runs. NIGHT: those that tests/run.sh runs with --night alone; their label is night.
function(lockstep_python_tests label)
  if(NOT LOCKSTEP_TORCH OR NOT LOCKSTEP_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "FIRST;SERIAL;NIGHT" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.py)
  # What several of them share: tests/harness, and what only this tier's share: world/.
  set(path ${CMAKE_SOURCE_DIR}/tests/harness:${CMAKE_CURRENT_SOURCE_DIR}/world)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME ${label}.${name}
             COMMAND ${Python3_EXECUTABLE} -m unittest -v ${name}
             WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    # One wait may take 300 s (DEADLINE_S in harness.py), and a file has several tests.
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT 1200
      SKIP_REGULAR_EXPRESSION "OK \\(skipped="
      ENVIRONMENT
      "LOCKSTEP_BIN=${CMAKE_BINARY_DIR}/bin;PYTHONPATH=${path};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
  foreach(name ${ARG_FIRST})
    set_tests_properties(${label}.${name} PROPERTIES COST 100)
  endforeach()
  foreach(name ${ARG_SERIAL})
    set_tests_properties(${label}.${name} PROPERTIES RUN_SERIAL ON)
  endforeach()
  foreach(name ${ARG_NIGHT})
    set_tests_properties(${label}.${name} PROPERTIES LABELS night)
  endforeach()
endfunction()
