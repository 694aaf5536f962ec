// The functions of NVML that we call, as a table. Lockstep opens NVIDIA's library at run time, so
// the same program starts on a machine without a GPU, and a test can put a library of its own
// there. The types are ours, so the build needs no CUDA toolkit. tests/cuda/nvml_header_test.cc
// compares them with nvml.h.
//
// Thread-safety: a value. NVML's functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"

namespace lockstep::nvml {

using DeviceHandle = struct DeviceRecord*;
using EventSet = struct EventSetRecord*;

// The return values of the functions that we act on.
inline constexpr int kSuccess = 0;
inline constexpr int kGpuIsLost = 15;

inline constexpr int kTemperatureOfGpu = 0;
inline constexpr int kClockOfSm = 1;
inline constexpr int kMemoryErrorUncorrected = 1;
inline constexpr int kEccSinceDriverLoad = 0;
inline constexpr unsigned long long kXidCriticalError = 0x8;
inline constexpr size_t kUuidBytes = 96;
inline constexpr unsigned int kNvLinks = 18;           // of one GPU, at most
inline constexpr unsigned char kFabricInProgress = 2;  // of FabricInfo.state; 0: it has no fabric
inline constexpr unsigned char kFabricCompleted = 3;

// Bits of the reasons for lowered clocks.
inline constexpr unsigned long long kSwPowerCap = 0x4;
inline constexpr unsigned long long kHwSlowdown = 0x8;
inline constexpr unsigned long long kSwThermalSlowdown = 0x20;
inline constexpr unsigned long long kHwThermalSlowdown = 0x40;
inline constexpr unsigned long long kHwPowerBrake = 0x80;

struct Utilization {
  unsigned int gpu;     // percent
  unsigned int memory;  // percent
};

struct Memory {
  unsigned long long total;  // bytes
  unsigned long long free;
  unsigned long long used;
};

struct FabricInfo {
  unsigned char cluster[16];
  int status;  // an NVML error; valid once the state is kFabricCompleted
  unsigned int clique;
  unsigned char state;
};

struct ProcessInfo {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

struct EventData {
  DeviceHandle device;
  unsigned long long type;
  unsigned long long xid;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

struct NvmlApi {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int error) = nullptr;
  int (*device_count)(unsigned int* devices) = nullptr;
  int (*device)(unsigned int index, DeviceHandle* device) = nullptr;
  int (*uuid)(DeviceHandle, char* uuid, unsigned int bytes) = nullptr;

  // Null if the library lacks the function.
  int (*utilization)(DeviceHandle, Utilization*) = nullptr;
  int (*memory)(DeviceHandle, Memory*) = nullptr;
  int (*power)(DeviceHandle, unsigned int* milliwatts) = nullptr;
  int (*power_limit)(DeviceHandle, unsigned int* milliwatts) = nullptr;
  int (*temperature)(DeviceHandle, int sensor, unsigned int* celsius) = nullptr;
  int (*clock)(DeviceHandle, int clock, unsigned int* megahertz) = nullptr;
  int (*throttle_reasons)(DeviceHandle, unsigned long long* bits) = nullptr;
  int (*ecc_errors)(DeviceHandle, int error, int counter, unsigned long long* errors) = nullptr;
  int (*remapped_rows)(DeviceHandle, unsigned int* of_corrected, unsigned int* of_uncorrected,
                       unsigned int* is_pending, unsigned int* has_failed) = nullptr;
  int (*nvlink_state)(DeviceHandle, unsigned int link, int* is_active) = nullptr;
  int (*fabric_info)(DeviceHandle, FabricInfo*) = nullptr;
  int (*persistence_mode)(DeviceHandle, int* is_on) = nullptr;
  int (*compute_processes)(DeviceHandle, unsigned int* count, ProcessInfo*) = nullptr;
  int (*create_event_set)(EventSet*) = nullptr;
  int (*register_events)(DeviceHandle, unsigned long long types, EventSet) = nullptr;
  int (*wait_for_event)(EventSet, EventData*, unsigned int timeout_ms) = nullptr;
  int (*free_event_set)(EventSet) = nullptr;
};

inline constexpr char kLibrary[] = "libnvidia-ml.so.1";  // comes with the driver

// `library`: a path, or a name that the loader finds. It stays open. open_nvml() calls none of
// its functions. kNoInput if it is not there, kConfig if it is something else.
Result<NvmlApi> open_nvml(const std::string& library);

}  // namespace lockstep::nvml
