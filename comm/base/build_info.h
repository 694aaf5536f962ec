// The sources and libraries of this build, for `lockstep version`, logs and metrics.
//
// Every build writes the values into a generated source (deploy/cmake/LockstepBuildInfo.cmake), so
// the revision is the revision of the sources, not of the last configure. Link with
// lockstep_build_info.
//
// Thread-safety: a pure function.
#pragma once

#include <string_view>

namespace lockstep {

struct BuildInfo {
  std::string_view version;     // of Lockstep, "0.3.0"
  std::string_view revision;    // git commit, with "-dirty" if files differ from it; or "unknown"
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "RelWithDebInfo", with the sanitizers if any
  std::string_view torch;       // version of LibTorch the worker is built with, or "none"
  std::string_view cuda;        // version of the CUDA toolkit, or "none"
};

BuildInfo build_info();

}  // namespace lockstep
