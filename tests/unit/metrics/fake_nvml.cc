// A stand-in for NVIDIA's libnvidia-ml.so.1. At every question it reads its answers from the file
// that the environment variable FAKE_NVML names: lines "KEY VALUE", where a key is what is asked
// for, with ".INDEX" for one GPU alone:
//
//   devices 2                 how many GPUs there are; 0 without a file
//   power 250000              of every GPU, in NVML's own units; see the functions below
//   power.1 300000            of GPU 1
//   error.power.1 15          what the question returns instead, e.g. "GPU is lost"
//   error.all.1 15            the same of every question about GPU 1
//   xids.1 3, xid.1 79        so many errors of this number happened there since the start
//   hang 1                    no question returns while it stands there
//   whole_uuids 1             UUIDs have 32 hex digits, the last of which are the index
//   links 3                   which NVLinks are active, as bits; without it there is none
//   fabric 3, fabric_error 1  of the registration at NVSwitches; without it the GPU is at none
//   process.1 4711            this process computes there
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "metrics/node/nvml_api.h"

namespace {

using lockstep::nvml::DeviceHandle;
using lockstep::nvml::EventData;
using lockstep::nvml::EventSet;
using lockstep::nvml::kSuccess;

constexpr int kNotSupported = 3;
constexpr int kTimeout = 10;
constexpr unsigned int kMostDevices = 256;

unsigned long long found_in_file(const std::string& key, unsigned long long otherwise) {
  const char* path = std::getenv("FAKE_NVML");
  std::ifstream in(path == nullptr ? "" : path);
  std::string word;
  for (unsigned long long value = 0; in >> word >> value;)
    if (word == key) return value;
  return otherwise;
}

// Handles are one more than the index, so that none is null.
DeviceHandle handle_of(unsigned long long index) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never followed
  return reinterpret_cast<DeviceHandle>(index + 1);
}
unsigned long long index_of(DeviceHandle device) {
  return reinterpret_cast<unsigned long long>(device) - 1;
}

unsigned long long value_of(const std::string& what, DeviceHandle device,
                            unsigned long long otherwise = 0) {
  const unsigned long long of_all = found_in_file(what, otherwise);
  return found_in_file(what + "." + std::to_string(index_of(device)), of_all);
}

int error_of(const std::string& what, DeviceHandle device) {
  while (found_in_file("hang", 0) != 0) ::usleep(1'000);
  const auto all = value_of("error.all", device, kSuccess);
  return static_cast<int>(value_of("error." + what, device, all));
}

template <typename Number>
int answer(const std::string& what, DeviceHandle device, Number* number) {
  *number = static_cast<Number>(value_of(what, device));
  return error_of(what, device);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return static_cast<int>(found_in_file("error.init", kSuccess));
}

int nvmlShutdown() {
  return kSuccess;
}

const char* nvmlErrorString(int) {
  return "the stand-in does not want to";
}

int nvmlDeviceGetCount_v2(unsigned int* devices) {
  *devices = static_cast<unsigned int>(found_in_file("devices", 0));
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, DeviceHandle* device) {
  *device = handle_of(index);
  return error_of("device", *device);
}

int nvmlDeviceGetUUID(DeviceHandle device, char* uuid, unsigned int bytes) {
  const char* form =
      found_in_file("whole_uuids", 0) != 0 ? "GPU-00000000-0000-0000-0000-%012llu" : "GPU-%llu";
  std::snprintf(uuid, bytes, form, index_of(device));
  return error_of("uuid", device);
}

int nvmlDeviceGetUtilizationRates(DeviceHandle device, lockstep::nvml::Utilization* utilization) {
  utilization->gpu = static_cast<unsigned int>(value_of("utilization", device));
  return answer("memory_utilization", device, &utilization->memory);
}

int nvmlDeviceGetMemoryInfo(DeviceHandle device, lockstep::nvml::Memory* memory) {
  memory->total = value_of("memory", device);
  memory->used = value_of("memory_used", device);
  memory->free = memory->total - memory->used;
  return error_of("memory", device);
}

#ifndef FAKE_NVML_HAS_NO_POWER
int nvmlDeviceGetPowerUsage(DeviceHandle device, unsigned int* milliwatts) {
  return answer("power", device, milliwatts);
}
#endif

int nvmlDeviceGetEnforcedPowerLimit(DeviceHandle device, unsigned int* milliwatts) {
  return answer("power_limit", device, milliwatts);
}

int nvmlDeviceGetTemperature(DeviceHandle device, int sensor, unsigned int* celsius) {
  if (sensor != lockstep::nvml::kTemperatureOfGpu) return kNotSupported;
  return answer("temperature", device, celsius);
}

int nvmlDeviceGetClockInfo(DeviceHandle device, int clock, unsigned int* megahertz) {
  if (clock != lockstep::nvml::kClockOfSm) return kNotSupported;
  return answer("clock", device, megahertz);
}

#ifdef FAKE_NVML_HAS_NO_POWER  // an old one: the name before driver 535
int nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle device, unsigned long long* bits) {
#else
int nvmlDeviceGetCurrentClocksEventReasons(DeviceHandle device, unsigned long long* bits) {
#endif
  return answer("throttle", device, bits);
}

int nvmlDeviceGetTotalEccErrors(DeviceHandle device, int error, int counter,
                                unsigned long long* errors) {
  if (error != lockstep::nvml::kMemoryErrorUncorrected) return kNotSupported;
  if (counter != lockstep::nvml::kEccSinceDriverLoad) return kNotSupported;
  return answer("ecc", device, errors);
}

#ifndef FAKE_NVML_HAS_NO_POWER  // an old one knows nothing of them
int nvmlDeviceGetRemappedRows(DeviceHandle device, unsigned int* corrected,
                              unsigned int* uncorrected, unsigned int* is_pending,
                              unsigned int* has_failed) {
  *corrected = *uncorrected = 0;
  *is_pending = static_cast<unsigned int>(value_of("remap_pending", device));
  return answer("remap_failed", device, has_failed);
}

int nvmlDeviceGetNvLinkState(DeviceHandle device, unsigned int link, int* is_active) {
  constexpr auto kNone = ~0ull;
  const auto links = value_of("links", device, kNone);
  if (links == kNone) return kNotSupported;
  *is_active = static_cast<int>(links >> link & 1);
  return error_of("links", device);
}

int nvmlDeviceGetGpuFabricInfo(DeviceHandle device, lockstep::nvml::FabricInfo* info) {
  info->status = static_cast<int>(value_of("fabric_error", device));
  return answer("fabric", device, &info->state);
}

int nvmlDeviceGetPersistenceMode(DeviceHandle device, int* is_on) {
  *is_on = static_cast<int>(value_of("persistence", device, 1));
  return error_of("persistence", device);
}

int nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle device, unsigned int* count,
                                            lockstep::nvml::ProcessInfo* infos) {
  const auto pid = static_cast<unsigned int>(value_of("process", device));
  *count = pid == 0 ? 0 : 1;
  if (pid != 0) infos[0] = {pid, 0, ~0u, ~0u};
  return error_of("process", device);
}
#endif

// The set is how many events of each GPU it has given out.
int nvmlEventSetCreate(EventSet* set) {
  *set = reinterpret_cast<EventSet>(new unsigned long long[kMostDevices]());
  return kSuccess;
}

int nvmlDeviceRegisterEvents(DeviceHandle device, unsigned long long types, EventSet) {
  if (types != lockstep::nvml::kXidCriticalError) return kNotSupported;
  return error_of("events", device);
}

int nvmlEventSetWait_v2(EventSet set, EventData* data, unsigned int) {
  auto* given = reinterpret_cast<unsigned long long*>(set);
  const auto devices = found_in_file("devices", 0);
  for (unsigned long long i = 0; i < devices && i < kMostDevices; ++i) {
    const auto device = handle_of(i);
    if (given[i] >= value_of("xids", device)) continue;
    ++given[i];
    *data = {device, lockstep::nvml::kXidCriticalError, value_of("xid", device), ~0u, ~0u};
    return kSuccess;
  }
  return kTimeout;
}

int nvmlEventSetFree(EventSet set) {
  delete[] reinterpret_cast<unsigned long long*>(set);
  return kSuccess;
}

}  // extern "C"
