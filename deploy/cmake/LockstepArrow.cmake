# Target lockstep::parquet: Arrow's own C++ libraries, of the wheel that deploy/install_deps.sh
# installs, its LOCKSTEP_ARROW_FOUND and LOCKSTEP_ARROW_VERSION. Only lockstep-parquet is linked to them.
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/deploy/install_deps.sh --print-arrow-root
                OUTPUT_VARIABLE lockstep_arrow_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(GLOB lockstep_arrow_libraries ${lockstep_arrow_root}/libarrow.so.*
     ${lockstep_arrow_root}/libparquet.so.*)
list(LENGTH lockstep_arrow_libraries count)
set(LOCKSTEP_ARROW_FOUND OFF)
if(lockstep_arrow_root AND count EQUAL 2)
  set(LOCKSTEP_ARROW_FOUND ON)
  # .../arrow-VERSION-pyX.Y/lib/pythonX.Y/site-packages/pyarrow
  string(REGEX REPLACE ".*/arrow-([0-9.]+)-py.*" "\\1" LOCKSTEP_ARROW_VERSION ${lockstep_arrow_root})
  message(STATUS "Arrow ${LOCKSTEP_ARROW_VERSION}: ${lockstep_arrow_root}")
  add_library(lockstep::parquet INTERFACE IMPORTED)
  target_include_directories(lockstep::parquet SYSTEM INTERFACE ${lockstep_arrow_root}/include)
  target_link_libraries(lockstep::parquet INTERFACE ${lockstep_arrow_libraries})
  target_link_options(lockstep::parquet INTERFACE -Wl,-rpath,${lockstep_arrow_root})
elseif(LOCKSTEP_PARQUET STREQUAL "ON")
  lockstep_missing("Arrow (pyarrow)")
endif()
