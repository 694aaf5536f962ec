// metrics/node/nvml_api.h declares by itself what it uses of NVML. This test compares it with
// NVIDIA's own header, if that is installed (package cuda-nvml-dev of the toolkit).
#include <gtest/gtest.h>

#include "metrics/node/nvml_api.h"

#if __has_include(<nvml.h>)
#include <nvml.h>

#include <array>
#include <cstddef>

// CUDA 13 deprecates these functions, and the drivers of CUDA 12 lack the new ones.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lockstep::nvml {
namespace {

static_assert(kSuccess == NVML_SUCCESS);
static_assert(kGpuIsLost == NVML_ERROR_GPU_IS_LOST);
static_assert(kTemperatureOfGpu == NVML_TEMPERATURE_GPU);
static_assert(kClockOfSm == NVML_CLOCK_SM);
static_assert(kMemoryErrorUncorrected == NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
static_assert(kEccSinceDriverLoad == NVML_VOLATILE_ECC);
static_assert(kXidCriticalError == nvmlEventTypeXidCriticalError);
static_assert(kUuidBytes >= NVML_DEVICE_UUID_V2_BUFFER_SIZE);
static_assert(kSwPowerCap == nvmlClocksThrottleReasonSwPowerCap);
static_assert(kHwSlowdown == nvmlClocksThrottleReasonHwSlowdown);
static_assert(kSwThermalSlowdown == nvmlClocksThrottleReasonSwThermalSlowdown);
static_assert(kHwThermalSlowdown == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(kHwPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

static_assert(sizeof(Utilization) == sizeof(nvmlUtilization_t));
static_assert(offsetof(Utilization, gpu) == offsetof(nvmlUtilization_t, gpu));
static_assert(offsetof(Utilization, memory) == offsetof(nvmlUtilization_t, memory));
static_assert(sizeof(Memory) == sizeof(nvmlMemory_t));
static_assert(offsetof(Memory, total) == offsetof(nvmlMemory_t, total));
static_assert(offsetof(Memory, free) == offsetof(nvmlMemory_t, free));
static_assert(offsetof(Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(kNvLinks == NVML_NVLINK_MAX_LINKS);
static_assert(kFabricInProgress == NVML_GPU_FABRIC_STATE_IN_PROGRESS);
static_assert(kFabricCompleted == NVML_GPU_FABRIC_STATE_COMPLETED);
static_assert(sizeof(FabricInfo) == sizeof(nvmlGpuFabricInfo_t));
static_assert(offsetof(FabricInfo, status) == offsetof(nvmlGpuFabricInfo_t, status));
static_assert(offsetof(FabricInfo, state) == offsetof(nvmlGpuFabricInfo_t, state));
static_assert(sizeof(ProcessInfo) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(ProcessInfo, pid) == offsetof(nvmlProcessInfo_t, pid));
static_assert(sizeof(EventData) == sizeof(nvmlEventData_t));
static_assert(offsetof(EventData, device) == offsetof(nvmlEventData_t, device));
static_assert(offsetof(EventData, type) == offsetof(nvmlEventData_t, eventType));
static_assert(offsetof(EventData, xid) == offsetof(nvmlEventData_t, eventData));
static_assert(offsetof(EventData, gpu_instance) == offsetof(nvmlEventData_t, gpuInstanceId));

// Compares the number of arguments and their sizes: enumerations there are integers here.
template <typename Function>
struct Shape;

template <typename Returned, typename... Arguments>
struct Shape<Returned (*)(Arguments...)> {
  static constexpr std::array<size_t, 1 + sizeof...(Arguments)> kBytes = {sizeof(Returned),
                                                                          sizeof(Arguments)...};
};

template <typename Ours, typename Theirs>
constexpr bool is_like(Ours NvmlApi::*, Theirs*) {
  return Shape<Ours>::kBytes == Shape<Theirs*>::kBytes;
}

static_assert(is_like(&NvmlApi::init, &nvmlInit_v2));
static_assert(is_like(&NvmlApi::shutdown, &nvmlShutdown));
static_assert(is_like(&NvmlApi::error_string, &nvmlErrorString));
static_assert(is_like(&NvmlApi::device_count, &nvmlDeviceGetCount_v2));
static_assert(is_like(&NvmlApi::device, &nvmlDeviceGetHandleByIndex_v2));
static_assert(is_like(&NvmlApi::uuid, &nvmlDeviceGetUUID));
static_assert(is_like(&NvmlApi::utilization, &nvmlDeviceGetUtilizationRates));
static_assert(is_like(&NvmlApi::memory, &nvmlDeviceGetMemoryInfo));
static_assert(is_like(&NvmlApi::power, &nvmlDeviceGetPowerUsage));
static_assert(is_like(&NvmlApi::power_limit, &nvmlDeviceGetEnforcedPowerLimit));
static_assert(is_like(&NvmlApi::temperature, &nvmlDeviceGetTemperature));
static_assert(is_like(&NvmlApi::clock, &nvmlDeviceGetClockInfo));
static_assert(is_like(&NvmlApi::throttle_reasons, &nvmlDeviceGetCurrentClocksThrottleReasons));
static_assert(is_like(&NvmlApi::throttle_reasons, &nvmlDeviceGetCurrentClocksEventReasons));
static_assert(is_like(&NvmlApi::ecc_errors, &nvmlDeviceGetTotalEccErrors));
static_assert(is_like(&NvmlApi::remapped_rows, &nvmlDeviceGetRemappedRows));
static_assert(is_like(&NvmlApi::nvlink_state, &nvmlDeviceGetNvLinkState));
static_assert(is_like(&NvmlApi::fabric_info, &nvmlDeviceGetGpuFabricInfo));
static_assert(is_like(&NvmlApi::persistence_mode, &nvmlDeviceGetPersistenceMode));
static_assert(is_like(&NvmlApi::compute_processes, &nvmlDeviceGetComputeRunningProcesses));
static_assert(is_like(&NvmlApi::create_event_set, &nvmlEventSetCreate));
static_assert(is_like(&NvmlApi::register_events, &nvmlDeviceRegisterEvents));
static_assert(is_like(&NvmlApi::wait_for_event, &nvmlEventSetWait_v2));
static_assert(is_like(&NvmlApi::free_event_set, &nvmlEventSetFree));

}  // namespace
}  // namespace lockstep::nvml
#define LOCKSTEP_HAS_NVML_HEADER 1
#else
#define LOCKSTEP_HAS_NVML_HEADER 0
#endif

TEST(NvmlHeader, AgreesWithOurDeclarations) {
  if (!LOCKSTEP_HAS_NVML_HEADER) GTEST_SKIP() << "there is no nvml.h (cuda-nvml-dev)";
}
