// Reads this machine's GPUs through NVML: all that NVML shows, whatever CUDA_VISIBLE_DEVICES says.
// The reader does not know which of them a run uses.
//
// Errors: a value that cannot be read is absent. The others are there all the same.
//
// Blocks: usually for milliseconds a GPU, without end if the driver hangs.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "metrics/node/nvml_api.h"

namespace lockstep {

// Counts since the reader was made.
struct XidErrors {
  uint64_t of_gpu = 0;
  uint64_t of_program = 0;  // caused by a program on the GPU, or by its end
  uint64_t last = 0;        // number of the last XID; 0: none
  uint64_t reset = 0;       // number of the last one that asks for a reset (gpu_xids.h); 0: none
};

struct RowRemaps {
  bool is_pending = false;  // rows of the memory are replaced at the next reset
  bool has_failed = false;
};

struct GpuFabric {
  unsigned char state = 0;  // nvml::kFabricCompleted
  int error = 0;            // of the GPU's registration at its switches; valid once completed
};

struct GpuSample {
  std::string uuid;      // as at the start; "unknown" if NVML did not give it
  bool is_lost = false;  // it fell off the bus, and only a reset brings it back

  std::optional<double> utilization_ratio = {};
  std::optional<double> memory_utilization_ratio = {};
  std::optional<double> memory_bytes = {};
  std::optional<double> memory_used_bytes = {};
  std::optional<double> power_watts = {};
  std::optional<double> power_limit_watts = {};
  std::optional<double> temperature_celsius = {};
  std::optional<double> sm_clock_hertz = {};
  std::optional<double> ecc_uncorrected_errors = {};        // since the driver was loaded
  std::optional<unsigned long long> throttle_reasons = {};  // bits of nvml_api.h
  std::optional<XidErrors> xid_errors = {};
  // Only gpu_health.h asks for these (Detail::kHealth).
  std::optional<RowRemaps> row_remaps = {};
  std::optional<uint32_t> active_links = {};  // a bit for each NVLink; absent: it has none
  std::optional<GpuFabric> fabric = {};       // absent: it is on no switch
  std::optional<bool> is_persistent = {};     // the driver keeps it ready between two programs
  std::optional<std::vector<uint32_t>> processes = {};  // pids that compute on it
};

class GpuReader {
 public:
  // A scrape needs less than a look at the health, which asks for each NVLink.
  enum class Detail : uint8_t { kMetrics, kHealth };

  // Starts NVML. kConfig with NVML's words if it does not start.
  static Result<GpuReader> start(const nvml::NvmlApi& api, Detail detail = Detail::kMetrics);
  ~GpuReader();
  GpuReader(GpuReader&& other) noexcept;
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;
  GpuReader& operator=(GpuReader&&) = delete;

  // By NVML's index. The reader lists the GPUs once, at the start.
  std::vector<GpuSample> read();

 private:
  struct Gpu {
    nvml::DeviceHandle device = nullptr;  // null: NVML gave no handle
    bool was_lost = false;                // at the start
    std::string uuid = "unknown";
    std::optional<XidErrors> xid_errors = {};
  };

  GpuReader(const nvml::NvmlApi& api, Detail detail) : api_(api), detail_(detail) {}
  void find_gpus();
  Gpu find_gpu(unsigned int index) const;
  void listen_for_errors();
  void count_errors();
  Gpu* gpu_of(nvml::DeviceHandle device);
  GpuSample read_gpu(const Gpu& gpu) const;

  nvml::NvmlApi api_;
  Detail detail_;
  bool is_started_ = true;  // false: moved from
  nvml::EventSet events_ = nullptr;
  std::vector<Gpu> gpus_;
};

}  // namespace lockstep
