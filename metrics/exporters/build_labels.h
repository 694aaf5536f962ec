// BuildInfo as the labels of lockstep_build_info.
#pragma once

#include <string>

#include "comm/base/build_info.h"
#include "metrics/base/families.h"

namespace lockstep {

inline MetricLabels build_labels(const BuildInfo& build) {
  return {{"version", std::string(build.version)},   {"revision", std::string(build.revision)},
          {"compiler", std::string(build.compiler)}, {"build_type", std::string(build.build_type)},
          {"torch", std::string(build.torch)},       {"cuda", std::string(build.cuda)}};
}

}  // namespace lockstep
