#include "metrics/node/gpu_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "comm/base/limits.h"
#include "metrics/node/gpu_xids.h"

namespace lockstep {
namespace {

constexpr double kPercent = 0.01;
constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;

// Asks for one value after the other, and for none once the GPU is lost.
class Questions {
 public:
  explicit Questions(nvml::DeviceHandle device) : device_(device) {}

  // The function's last argument receives the value.
  template <typename Value, typename... Middle, typename... Given>
  std::optional<Value> ask(int (*function)(nvml::DeviceHandle, Middle...), Value empty,
                           Given... given) {
    if (function == nullptr || device_ == nullptr || is_lost_) return std::nullopt;
    Value value = empty;
    const int error = function(device_, given..., &value);
    is_lost_ = error == nvml::kGpuIsLost;
    if (error != nvml::kSuccess) return std::nullopt;
    return value;
  }

  // Asks a question of another form: the GPU is the first argument.
  template <typename... Parameters, typename... Arguments>
  bool fills(int (*function)(nvml::DeviceHandle, Parameters...), Arguments... arguments) {
    if (function == nullptr || device_ == nullptr || is_lost_) return false;
    const int error = function(device_, arguments...);
    is_lost_ = error == nvml::kGpuIsLost;
    return error == nvml::kSuccess;
  }

  bool is_lost() const { return is_lost_; }

 private:
  const nvml::DeviceHandle device_;
  bool is_lost_ = false;
};

template <typename Number>
std::optional<double> scaled(const std::optional<Number>& number, double scale) {
  if (!number) return std::nullopt;
  return static_cast<double>(*number) * scale;
}

void count(unsigned long long xid, XidErrors& errors) {
  const XidMeans meaning = meaning_of_xid(xid);
  ++(meaning == XidMeans::kProgram ? errors.of_program : errors.of_gpu);
  errors.last = xid;
  if (meaning == XidMeans::kReset) errors.reset = xid;
}

std::optional<RowRemaps> ask_rows(const nvml::NvmlApi& api, Questions& questions) {
  unsigned int corrected = 0, uncorrected = 0, is_pending = 0, has_failed = 0;
  if (!questions.fills(api.remapped_rows, &corrected, &uncorrected, &is_pending, &has_failed))
    return std::nullopt;
  return RowRemaps{is_pending != 0, has_failed != 0};
}

// Links that a board has not wired give an error or are inactive for good.
std::optional<uint32_t> ask_links(const nvml::NvmlApi& api, Questions& questions) {
  std::optional<uint32_t> active;
  for (unsigned int link = 0; link < nvml::kNvLinks; ++link) {
    int is_active = 0;
    if (!questions.fills(api.nvlink_state, link, &is_active)) continue;
    active = active.value_or(0) | (is_active != 0 ? 1u << link : 0u);
  }
  return active;
}

std::optional<GpuFabric> ask_fabric(const nvml::NvmlApi& api, Questions& questions) {
  const auto info = questions.ask(api.fabric_info, nvml::FabricInfo{});
  if (!info || info->state == 0) return std::nullopt;
  return GpuFabric{info->state, info->status};
}

std::optional<std::vector<uint32_t>> ask_processes(const nvml::NvmlApi& api, Questions& questions) {
  std::array<nvml::ProcessInfo, limits::kGpuProcesses> infos{};
  auto count = static_cast<unsigned int>(infos.size());
  if (!questions.fills(api.compute_processes, &count, infos.data())) return std::nullopt;
  std::vector<uint32_t> pids;
  for (size_t i = 0; i < std::min<size_t>(count, infos.size()); ++i) pids.push_back(infos[i].pid);
  return pids;
}

void ask_health(const nvml::NvmlApi& api, Questions& questions, GpuSample& sample) {
  sample.row_remaps = ask_rows(api, questions);
  sample.active_links = ask_links(api, questions);
  sample.fabric = ask_fabric(api, questions);
  if (const auto is_on = questions.ask(api.persistence_mode, 0)) sample.is_persistent = *is_on != 0;
  sample.processes = ask_processes(api, questions);
}

}  // namespace

Result<GpuReader> GpuReader::start(const nvml::NvmlApi& api, Detail detail) {
  if (const int error = api.init(); error != nvml::kSuccess)
    return Status(Code::kConfig, "NVML does not start: " + std::string(api.error_string(error)));
  GpuReader reader(api, detail);
  reader.find_gpus();
  reader.listen_for_errors();
  return reader;
}

GpuReader::GpuReader(GpuReader&& other) noexcept
    : api_(other.api_),
      detail_(other.detail_),
      is_started_(std::exchange(other.is_started_, false)),
      events_(std::exchange(other.events_, nullptr)),
      gpus_(std::move(other.gpus_)) {}

GpuReader::~GpuReader() {
  if (events_ != nullptr) (void)api_.free_event_set(events_);
  if (is_started_) (void)api_.shutdown();
}

void GpuReader::find_gpus() {
  unsigned int found = 0;
  if (api_.device_count(&found) != nvml::kSuccess) return;
  const unsigned int shown = std::min(found, limits::kGpus);
  for (unsigned int index = 0; index < shown; ++index) gpus_.push_back(find_gpu(index));
}

GpuReader::Gpu GpuReader::find_gpu(unsigned int index) const {
  Gpu gpu;
  const int error = api_.device(index, &gpu.device);
  gpu.was_lost = error == nvml::kGpuIsLost;
  if (error != nvml::kSuccess) gpu.device = nullptr;
  std::array<char, nvml::kUuidBytes> uuid{};
  if (gpu.device != nullptr &&
      api_.uuid(gpu.device, uuid.data(), uuid.size() - 1) == nvml::kSuccess)
    gpu.uuid = uuid.data();
  return gpu;
}

void GpuReader::listen_for_errors() {
  if (api_.create_event_set == nullptr) return;
  if (api_.create_event_set(&events_) != nvml::kSuccess) events_ = nullptr;
  if (events_ == nullptr) return;
  for (Gpu& gpu : gpus_) {
    if (gpu.device == nullptr) continue;
    if (api_.register_events(gpu.device, nvml::kXidCriticalError, events_) == nvml::kSuccess)
      gpu.xid_errors = XidErrors();
  }
}

void GpuReader::count_errors() {
  if (events_ == nullptr) return;
  nvml::EventData event{};
  for (int i = 0; i < limits::kGpuEventsAtOnce; ++i) {
    if (api_.wait_for_event(events_, &event, 0) != nvml::kSuccess)
      return;  // mostly there is no event
    if ((event.type & nvml::kXidCriticalError) == 0) continue;
    Gpu* gpu = gpu_of(event.device);
    if (gpu != nullptr && gpu->xid_errors) count(event.xid, *gpu->xid_errors);
  }
}

// By its UUID if the event has another handle: NVML does not promise to give out the same one.
GpuReader::Gpu* GpuReader::gpu_of(nvml::DeviceHandle device) {
  for (Gpu& gpu : gpus_)
    if (gpu.device == device) return &gpu;
  std::array<char, nvml::kUuidBytes> uuid{};
  if (api_.uuid(device, uuid.data(), uuid.size() - 1) != nvml::kSuccess) return nullptr;
  for (Gpu& gpu : gpus_)
    if (gpu.uuid == uuid.data()) return &gpu;
  return nullptr;
}

std::vector<GpuSample> GpuReader::read() {
  count_errors();
  std::vector<GpuSample> samples;
  for (const Gpu& gpu : gpus_) samples.push_back(read_gpu(gpu));
  return samples;
}

GpuSample GpuReader::read_gpu(const Gpu& gpu) const {
  GpuSample sample{.uuid = gpu.uuid};
  Questions questions(gpu.device);
  if (const auto busy = questions.ask(api_.utilization, nvml::Utilization{})) {
    sample.utilization_ratio = busy->gpu * kPercent;
    sample.memory_utilization_ratio = busy->memory * kPercent;
  }
  if (const auto memory = questions.ask(api_.memory, nvml::Memory{})) {
    sample.memory_bytes = static_cast<double>(memory->total);
    sample.memory_used_bytes = static_cast<double>(memory->used);
  }
  sample.power_watts = scaled(questions.ask(api_.power, 0u), kMilli);
  sample.power_limit_watts = scaled(questions.ask(api_.power_limit, 0u), kMilli);
  sample.temperature_celsius =
      scaled(questions.ask(api_.temperature, 0u, nvml::kTemperatureOfGpu), 1);
  sample.sm_clock_hertz = scaled(questions.ask(api_.clock, 0u, nvml::kClockOfSm), kMega);
  sample.throttle_reasons = questions.ask(api_.throttle_reasons, 0ull);
  sample.ecc_uncorrected_errors =
      scaled(questions.ask(api_.ecc_errors, 0ull, nvml::kMemoryErrorUncorrected,
                           nvml::kEccSinceDriverLoad),
             1);
  if (detail_ == Detail::kHealth) ask_health(api_, questions, sample);
  sample.xid_errors = gpu.xid_errors;
  sample.is_lost = gpu.was_lost || questions.is_lost();
  return sample;
}

}  // namespace lockstep
