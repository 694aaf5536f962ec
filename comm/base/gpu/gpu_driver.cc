#include "comm/base/gpu/gpu_driver.h"

#include <dlfcn.h>

#include <string>

namespace lockstep {
namespace {

Status no_gpu(const std::string& why) {
  return {Code::kConfig, "no NVIDIA GPU can be used here: " + why};
}

}  // namespace

Result<uint32_t> count_gpus() {
  return count_gpus("libcuda.so.1");
}

Result<uint32_t> count_gpus(const char* driver_library) {
  void* driver = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr)
    return no_gpu("the driver is not installed (" + std::string(dlerror()) + ")");
  using Init = int (*)(unsigned int);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr)
    return no_gpu(std::string(driver_library) + " is not NVIDIA's driver");
  if (const int error = init(0); error != 0)
    return no_gpu("the driver does not start (CUDA error " + std::to_string(error) + ")");
  int devices = 0;
  if (const int error = count(&devices); error != 0)
    return no_gpu("the driver does not list its GPUs (CUDA error " + std::to_string(error) + ")");
  if (devices <= 0) return no_gpu("the driver shows none; check CUDA_VISIBLE_DEVICES");
  return static_cast<uint32_t>(devices);
}

}  // namespace lockstep
