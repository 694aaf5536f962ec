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

# lockstep_needs_wheel(TARGET WHEEL VERSION DIRECTORY): TARGET is installed as TARGET-program, and a
#   script as TARGET, which looks for DIRECTORY of the Python package WHEEL in this version; in both
#   components.
function(lockstep_needs_wheel target wheel version directory)
  lockstep_install_launcher(${target} ${wheel} ${version} ${directory} programs ${lockstep_home} ""
    "or name a Python that has it in LOCKSTEP_PYTHON")
  lockstep_install_launcher(${target} ${wheel} ${version} ${directory} wheel lockstep/bin
    EXCLUDE_FROM_ALL "or install Lockstep's wheel into an environment that has it")
endfunction()

function(lockstep_install_launcher target wheel version directory component home exclude elsewhere)
  set(program ${target}-program)
  set(launcher ${CMAKE_BINARY_DIR}/package/${component}/${target})
  configure_file(${CMAKE_SOURCE_DIR}/deploy/package/with_wheel.sh.in ${launcher} @ONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                  WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${launcher} DESTINATION ${home} COMPONENT ${component} ${exclude})
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION ${home} RENAME ${program}
          COMPONENT ${component} ${exclude})
  # Such a file is copied as it was linked, so the linker's paths are taken out here.
  install(CODE "
    file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/${program}\")
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\"
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${home}/${program}\")
    endif()" COMPONENT ${component} ${exclude})
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

# The component wheel: what deploy/wheel.py packs, the package with its library and programs inside it,
# among them the launchers of lockstep-worker and lockstep-parquet.
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
