#include "metrics/node/nvml_api.h"

#include <dlfcn.h>

namespace lockstep::nvml {
namespace {

template <typename Function>
void find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

// Required functions: without them no GPU has a name.
const char* find_required(void* library, NvmlApi& api) {
  find(library, "nvmlInit_v2", &api.init);
  find(library, "nvmlShutdown", &api.shutdown);
  find(library, "nvmlErrorString", &api.error_string);
  find(library, "nvmlDeviceGetCount_v2", &api.device_count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", &api.device);
  find(library, "nvmlDeviceGetUUID", &api.uuid);
  if (api.init == nullptr) return "nvmlInit_v2";
  if (api.shutdown == nullptr) return "nvmlShutdown";
  if (api.error_string == nullptr) return "nvmlErrorString";
  if (api.device_count == nullptr) return "nvmlDeviceGetCount_v2";
  if (api.device == nullptr) return "nvmlDeviceGetHandleByIndex_v2";
  if (api.uuid == nullptr) return "nvmlDeviceGetUUID";
  return nullptr;
}

void find_values(void* library, NvmlApi& api) {
  find(library, "nvmlDeviceGetUtilizationRates", &api.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", &api.memory);
  find(library, "nvmlDeviceGetPowerUsage", &api.power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", &api.power_limit);
  find(library, "nvmlDeviceGetTemperature", &api.temperature);
  find(library, "nvmlDeviceGetClockInfo", &api.clock);
  find(library, "nvmlDeviceGetTotalEccErrors", &api.ecc_errors);
  find(library, "nvmlDeviceGetRemappedRows", &api.remapped_rows);
  find(library, "nvmlDeviceGetNvLinkState", &api.nvlink_state);
  find(library, "nvmlDeviceGetGpuFabricInfo", &api.fabric_info);
  find(library, "nvmlDeviceGetPersistenceMode", &api.persistence_mode);
  // Versions before the third fill other structures.
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &api.compute_processes);
  // The name since driver 535, and the older one.
  find(library, "nvmlDeviceGetCurrentClocksEventReasons", &api.throttle_reasons);
  if (api.throttle_reasons == nullptr)
    find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &api.throttle_reasons);
}

// All or none, because one is useless without the others.
void find_events(void* library, NvmlApi& api) {
  find(library, "nvmlEventSetCreate", &api.create_event_set);
  find(library, "nvmlDeviceRegisterEvents", &api.register_events);
  find(library, "nvmlEventSetWait_v2", &api.wait_for_event);
  find(library, "nvmlEventSetFree", &api.free_event_set);
  if (api.register_events == nullptr || api.wait_for_event == nullptr ||
      api.free_event_set == nullptr)
    api.create_event_set = nullptr;
}

}  // namespace

Result<NvmlApi> open_nvml(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Status(Code::kNoInput, "cannot open NVML: " + std::string(dlerror()));
  NvmlApi api;
  if (const char* missing = find_required(handle, api); missing != nullptr)
    return Status(Code::kConfig, library + " is not NVML: it has no " + missing);
  find_values(handle, api);
  find_events(handle, api);
  return api;
}

}  // namespace lockstep::nvml
