#include "worker/torch/device/open_gpu.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "comm/base/gpu/gpu_driver.h"
#include "worker/cuda/module_entry.h"
#include "worker/device/load_module.h"

namespace lockstep {
namespace {

Status refused(const std::string& why) {
  return {Code::kConfig, why + "; or train on the CPU with cluster.device: cpu"};
}

// The directory of a library that this process has loaded.
std::string directory_of(const char* library) {
  void* loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return "";
  link_map* map = nullptr;
  const bool found = dlinfo(loaded, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  const std::string path = found ? map->l_name : "";
  dlclose(loaded);
  return std::filesystem::path(path).parent_path().string();
}

// Loads globally, so that LibTorch finds the parts that register themselves there.
Status load_torch_cuda() {
  const std::string path = directory_of("libtorch_cpu.so") + "/libtorch_cuda.so";
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return refused("this LibTorch has no CUDA: there is no " + path +
                   "; install a build of PyTorch for CUDA 13");
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return refused("LibTorch's CUDA library cannot be loaded: " + std::string(dlerror()) +
                   "; install the NVIDIA libraries that PyTorch's wheel asks for");
  return Status::ok();
}

// Exact: the same bits whenever a slot is computed again. Fast: the quickest kernels on this GPU,
// except TF32 in matrix products, which LibTorch's default excludes as well.
void set_numerics(bool is_exact) {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(is_exact, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);  // nothing reads unwritten memory
  context.setDeterministicCuDNN(is_exact);
  context.setBenchmarkCuDNN(!is_exact);
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(!is_exact);
  if (!is_exact) return;
  context.setSDPUseMemEfficient(false);  // their backward adds in any order
  context.setSDPUseCuDNN(false);
}

// Opens LibTorch's side of the module's stream, a library next to the module. Every engine on a GPU
// computes there.
Status give_torch_queue(const std::string& module_path, DeviceModule& module) {
  const auto path = std::filesystem::path(module_path).parent_path() / kTorchQueueLibrary;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return refused("a part of the GPU module cannot be loaded: " + std::string(dlerror()) +
                   "; build Lockstep with the preset gpu");
  const auto open = reinterpret_cast<OpenTorchQueue>(dlsym(library, kTorchQueueEntry));
  const auto device = static_cast<int>(at::Device(module.torch_device()).index());
  const OpenedTorchQueue opened =
      open == nullptr ? OpenedTorchQueue{} : open(module.compute_stream(), device);
  if (opened.version != kDeviceModuleVersion)
    return refused(path.string() +
                   " belongs to another build; build Lockstep again with the preset gpu");
  const std::unique_ptr<Status> why(opened.error);
  if (opened.queue == nullptr) return refused(why->message());
  module.give(std::unique_ptr<TorchQueue>(opened.queue));
  return Status::ok();
}

constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// Memory in use: all that LibTorch's allocator has taken from the device, tensors or not, and ours.
class DeviceMeter final : public MemoryMeter {
 public:
  DeviceMeter(const DeviceModule& module, uint32_t workers)
      : module_(module), workers_(workers), device_(module.torch_device()) {}

  Result<uint64_t> begin() override try {
    settle();
    allocator().resetPeakStats(device_.index());
    before_ = reserved().current;
    ours_before_ = ours();
    return static_cast<uint64_t>(allocator().getMemoryInfo(device_.index()).first) / workers_;
  } catch (const c10::Error& e) {
    return Status(Code::kInternal, e.what_without_backtrace());
  }

  Result<uint64_t> taken() override try {
    const int64_t torchs = std::max<int64_t>(0, reserved().peak - before_);
    return static_cast<uint64_t>(std::max<int64_t>(0, torchs + ours() - ours_before_));
  } catch (const c10::Error& e) {
    return Status(Code::kInternal, e.what_without_backtrace());
  }

  void settle() override { allocator().emptyCache(); }

 private:
  int64_t ours() const { return static_cast<int64_t>(module_.allocated_bytes()); }
  c10::DeviceAllocator& allocator() const { return *c10::getDeviceAllocator(device_.type()); }
  c10::CachingAllocator::Stat reserved() const {
    return allocator().getDeviceStats(device_.index()).reserved_bytes[kAll];
  }

  const DeviceModule& module_;
  const uint32_t workers_;
  const at::Device device_;
  int64_t before_ = 0;
  int64_t ours_before_ = 0;
};

}  // namespace

Result<std::unique_ptr<DeviceModule>> open_gpu(const wire::JobSpec& job, const std::string& path,
                                               uint32_t local_rank) {
  const bool is_exact = job.comm().numerics() != "fast";
  if (const auto gpus = count_gpus(); !gpus.is_ok()) return refused(gpus.status().message());
  if (std::getenv("NCCL_SOCKET_IFNAME") == nullptr)
    return Status(Code::kInternal, "prepare_gpu_environment() comes before open_gpu()");
  LOCKSTEP_RETURN_IF_ERROR(load_torch_cuda());  // first: our module uses its CUDA runtime
  LOCKSTEP_ASSIGN_OR_RETURN(auto module, open_device_module(path, local_rank));
  try {
    if (!at::hasCUDA()) return refused("LibTorch finds no GPU although the driver shows one");
    at::globalContext().lazyInitDevice(at::kCUDA);
    set_numerics(is_exact);
  } catch (const c10::Error& e) {
    return refused(std::string("LibTorch cannot use the GPU: ") + e.what_without_backtrace());
  }
  return module;
}

std::string device_module_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / kDeviceModuleLibrary).string();
}

Result<std::unique_ptr<DeviceModule>> open_device_module(const std::string& path,
                                                         uint32_t local_rank) {
  auto loaded = load_device_module(path, local_rank);
  if (!loaded.is_ok()) return refused(loaded.status().message());
  std::unique_ptr<DeviceModule> module = std::move(loaded).value();
  LOCKSTEP_RETURN_IF_ERROR(give_torch_queue(path, *module));
  return module;
}

Result<std::unique_ptr<MemoryMeter>> make_meter(const DeviceModule* module, uint32_t workers_here) {
  if (module == nullptr) return make_host_meter(workers_here);
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t gpus, count_gpus());
  const uint32_t sharing = (std::max(1u, workers_here) - 1) / std::max(1u, gpus) + 1;
  return std::unique_ptr<MemoryMeter>(std::make_unique<DeviceMeter>(*module, sharing));
}

Result<uint64_t> peak_device_bytes(const DeviceModule& module) try {
  const at::Device device(module.torch_device());
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return module.allocated_bytes() + static_cast<uint64_t>(stats.allocated_bytes[kAll].peak);
} catch (const c10::Error& e) {
  return Status(Code::kInternal, e.what_without_backtrace());
}

}  // namespace lockstep
