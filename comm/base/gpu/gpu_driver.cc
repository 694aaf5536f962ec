#include "comm/base/gpu/gpu_driver.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <span>
#include <string>

#include "comm/base/gpu/visible_devices.h"
#include "comm/base/hash.h"

namespace lockstep {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

Status no_gpu(const std::string& why) {
  return {Code::kConfig, "no NVIDIA GPU can be used here: " + why};
}

// A slice has a UUID of its own, which the first version of the function does not know.
bool is_slice(void* driver, int device, const std::array<uint8_t, 16>& uuid) {
  using Uuid = int (*)(uint8_t*, int);
  using Name = int (*)(char*, int, int);
  const auto whole = reinterpret_cast<Uuid>(dlsym(driver, "cuDeviceGetUuid"));
  std::array<uint8_t, 16> of_gpu = {};
  if (whole != nullptr && whole(of_gpu.data(), device) == 0 && of_gpu != uuid) return true;
  const auto name_of = reinterpret_cast<Name>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name = {};
  if (name_of == nullptr || name_of(name.data(), static_cast<int>(name.size()) - 1, device) != 0)
    return false;
  return std::string_view(name.data()).find(" MIG ") != std::string_view::npos;
}

}  // namespace

Result<uint32_t> count_gpus() {
  return count_gpus(kDriver);
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
  if (const int error = init(0); error == kNoDevice)
    return no_gpu(why_none_visible(std::getenv("CUDA_VISIBLE_DEVICES")) + " (CUDA error 100)");
  else if (error != 0)
    return no_gpu("the driver does not start (CUDA error " + std::to_string(error) + ")");
  int devices = 0;
  if (const int error = count(&devices); error != 0)
    return no_gpu("the driver does not list its GPUs (CUDA error " + std::to_string(error) + ")");
  if (devices <= 0) return no_gpu(why_none_visible(std::getenv("CUDA_VISIBLE_DEVICES")));
  return static_cast<uint32_t>(devices);
}

Result<GpuIdentity> identify_gpu(uint32_t index) {
  return identify_gpu(index, kDriver);
}

Result<GpuIdentity> identify_gpu(uint32_t index, const char* driver_library) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t gpus, count_gpus(driver_library));  // it stays open
  void* driver = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
  using Get = int (*)(int*, int);
  using Pci = int (*)(char*, int, int);
  using Uuid = int (*)(uint8_t*, int);
  const auto get = reinterpret_cast<Get>(dlsym(driver, "cuDeviceGet"));
  const auto pci_of = reinterpret_cast<Pci>(dlsym(driver, "cuDeviceGetPCIBusId"));
  // For a slice of a GPU the second version gives the slice's own UUID.
  const auto uuid_of = reinterpret_cast<Uuid>(dlsym(driver, "cuDeviceGetUuid_v2"));
  if (get == nullptr || pci_of == nullptr || uuid_of == nullptr)
    return no_gpu(std::string(driver_library) + " does not tell which GPU is which");
  int device = 0;
  std::array<char, 64> pci = {};
  std::array<uint8_t, 16> uuid = {};
  int error = get(&device, static_cast<int>(index % gpus));
  if (error == 0) error = pci_of(pci.data(), static_cast<int>(pci.size()), device);
  if (error == 0) error = uuid_of(uuid.data(), device);
  if (error != 0)
    return no_gpu("the driver does not name its GPUs (CUDA error " + std::to_string(error) + ")");
  return GpuIdentity{pci.data(), to_hex(uuid), is_slice(driver, device, uuid)};
}

Result<uint32_t> find_gpu(const std::string& uuid) {
  return find_gpu(uuid, kDriver);
}

Result<uint32_t> find_gpu(const std::string& uuid, const char* driver_library) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t gpus, count_gpus(driver_library));
  for (uint32_t i = 0; i < gpus; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const GpuIdentity found, identify_gpu(i, driver_library));
    if (found.uuid == uuid) return i;
  }
  return Status(Code::kConfig,
                "GPU " + uuid +
                    ", on which this place has computed before, is gone: the driver shows " +
                    std::to_string(gpus) +
                    " others; look for its fault in the kernel's log (dmesg, Xid), and start the "
                    "agent of this node again when the GPU is back or replaced");
}

}  // namespace lockstep
