#include "worker/device/load_module.h"

#include <dlfcn.h>

#include "worker/cuda/module_entry.h"

namespace lockstep {

Result<std::unique_ptr<DeviceModule>> load_device_module(const std::string& path,
                                                         uint32_t local_rank) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Status(Code::kConfig, "the GPU module cannot be loaded: " + std::string(dlerror()) +
                                     "; build Lockstep with the preset gpu");
  const auto open = reinterpret_cast<OpenDeviceModule>(dlsym(library, kDeviceModuleEntry));
  const OpenedModule opened = open == nullptr ? OpenedModule{} : open(local_rank);
  if (opened.version != kDeviceModuleVersion)
    return Status(Code::kConfig,
                  path + " belongs to another build; build Lockstep again with the preset gpu");
  const std::unique_ptr<Status> why(opened.error);
  if (opened.module == nullptr) return Status(Code::kConfig, why->message());
  return std::unique_ptr<DeviceModule>(opened.module);
}

}  // namespace lockstep
