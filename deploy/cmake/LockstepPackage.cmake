# What `cmake --install` and `cpack` put where; the Debian package and the tar hold the same tree:
#   bin/lockstep                   a link; the other programs are found beside what it leads to
#   lib/lockstep/                  programs and modules
#   lib/lockstep/lockstep-worker   deploy/package/with_wheel.sh.in, which finds LibTorch at run time
#                                  and starts lockstep-worker-program (lockstep-parquet: pyarrow)
#   lib/lockstep/python/lockstep/  the package of training loops in Python, and its library
#   include/lockstep/plugin.h, share/doc/lockstep/
#
# No program keeps a path of the machine that built it, so the tree works wherever it is unpacked.
set(lockstep_home lib/lockstep)  # not multiarch: it holds programs

# lockstep_needs_wheel(TARGET WHEEL VERSION DIRECTORY): TARGET is installed as TARGET-program, behind
#   a script that looks for DIRECTORY of the Python package WHEEL, in this version.
function(lockstep_needs_wheel target wheel version directory)
  set(program ${target}-program)
  set(launcher ${CMAKE_BINARY_DIR}/package/${target})
  configure_file(${CMAKE_SOURCE_DIR}/deploy/package/with_wheel.sh.in ${launcher} @ONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                  WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${launcher} DESTINATION ${lockstep_home} COMPONENT programs)
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION ${lockstep_home} RENAME ${program}
          COMPONENT programs)
  # Such a file is copied as it was linked, so the linker's paths are taken out here.
  install(CODE "
    file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${lockstep_home}/${program}\")
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\"
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${lockstep_home}/${program}\")
    endif()" COMPONENT programs)
endfunction()

# Everything that users start or that a program opens: what deploy/quickstart.sh builds.
add_custom_target(programs)
foreach(target lockstep lockstep-coordinator lockstep_mpi_module lockstep_cuda_module
        lockstep_cuda_torch)
  if(TARGET ${target})
    add_dependencies(programs ${target})
    install(TARGETS ${target} DESTINATION ${lockstep_home} COMPONENT programs)
  endif()
endforeach()
if(TARGET lockstep_core)
  add_dependencies(programs lockstep_core)
  install(TARGETS lockstep_core DESTINATION ${lockstep_home}/python/lockstep COMPONENT programs)
  install(DIRECTORY worker/python/lockstep DESTINATION ${lockstep_home}/python COMPONENT programs
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()
if(TARGET lockstep-worker)
  add_dependencies(programs lockstep-worker)
  lockstep_needs_wheel(lockstep-worker torch ${LOCKSTEP_TORCH_VERSION} lib)
endif()
if(TARGET lockstep-parquet)
  add_dependencies(programs lockstep-parquet)
  lockstep_needs_wheel(lockstep-parquet pyarrow ${LOCKSTEP_ARROW_VERSION} .)
endif()
install(CODE "
  file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin\")
  file(CREATE_LINK ../${lockstep_home}/lockstep
       \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/lockstep\" SYMBOLIC)" COMPONENT programs)
install(FILES LICENSE README.md DESTINATION share/doc/lockstep COMPONENT programs)
install(DIRECTORY deploy/examples deploy/grafana deploy/prometheus
        DESTINATION share/doc/lockstep COMPONENT programs
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.yml" PATTERN "*.json")

# The component wheel: what deploy/wheel.py packs, the package with its library and programs inside it.
# A wheel has no lockstep-worker and no lockstep-parquet: each needs one version of another wheel.
if(TARGET lockstep_core)
  install(TARGETS lockstep_core DESTINATION lockstep COMPONENT wheel EXCLUDE_FROM_ALL)
  install(TARGETS lockstep lockstep-coordinator DESTINATION lockstep/bin COMPONENT wheel EXCLUDE_FROM_ALL)
  install(DIRECTORY worker/python/lockstep DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_CONTACT "Lockstep maintainers <lockstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Distributed training that keeps going, with the same bits")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs plugin)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What the programs link, from Debian 12. deploy/container/Containerfile installs the same ones.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libc6 (>= 2.36), libstdc++6 (>= 12), libcurl4, libfmt9, libjpeg62-turbo, liblz4-1, libpng16-16, libprometheus-cpp-core1.0, libprotobuf32, libspdlog1.10, libsqlite3-0, libssl3, libwebp7, libxxhash0, libyaml-cpp0.7, libzstd1, zlib1g")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, openmpi-bin")
include(CPack)
