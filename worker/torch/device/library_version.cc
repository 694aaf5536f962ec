#include "worker/torch/device/library_version.h"

#include <dlfcn.h>

#include <cstddef>

namespace lockstep {

std::string library_version(const char* function) {
  const auto version = reinterpret_cast<size_t (*)()>(dlsym(RTLD_DEFAULT, function));
  return version == nullptr ? "none" : std::to_string(version());
}

}  // namespace lockstep
