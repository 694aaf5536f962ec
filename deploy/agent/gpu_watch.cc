#include "deploy/agent/gpu_watch.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "comm/base/gpu/gpu_driver.h"

namespace lockstep {
namespace {

constexpr size_t kUuidDigits = 32;

// "GPU-3f2a0c1e-…" of NVML as the driver has it.
std::string plain(const std::string& nvml_uuid) {
  std::string digits;
  const size_t begin = nvml_uuid.starts_with("GPU-") ? 4 : 0;
  for (const char c : nvml_uuid.substr(begin))
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0)
      digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return digits.size() == kUuidDigits ? digits : "";
}

}  // namespace

std::string gpu_of_driver(uint32_t number) {
  const auto identity = identify_gpu(number);
  return identity.is_ok() ? identity->uuid : "";
}

GpuWatch::GpuWatch(const std::string& nvml_library, GpuOfNumber gpu_of_number, bool is_alone)
    : sampler_(nvml_library, GpuReader::Detail::kHealth),
      gpu_of_number_(std::move(gpu_of_number)),
      is_alone_(is_alone) {}

void GpuWatch::look(const std::vector<WorkerSlots::GpuPlace>& places, int64_t wait_ms) {
  const GpuSamples samples = sampler_.sample(wait_ms);
  if (!samples.is_available || !samples.is_answered) return;
  for (const GpuSample& sample : samples.gpus) {
    const std::string uuid = plain(sample.uuid);
    if (uuid.empty()) continue;
    GpuHistory& history = histories_[uuid];
    history = judge(std::move(history), {sample, strangers_of(sample, places)});
    of_nvml_[sample.uuid] = uuid;
  }
}

std::map<std::string, Fitness> GpuWatch::verdicts() const {
  std::map<std::string, Fitness> all;
  for (const auto& [nvml_uuid, uuid] : of_nvml_)
    all[nvml_uuid] = histories_.at(uuid).verdict.fitness;
  return all;
}

// If a worker of ours is on the GPU and not in the list, the list has pids of another namespace, or
// not all.
std::optional<std::vector<uint32_t>> GpuWatch::strangers_of(
    const GpuSample& sample, const std::vector<WorkerSlots::GpuPlace>& places) const {
  if (!is_alone_ || !sample.processes) return std::nullopt;
  std::vector<uint32_t> strangers = *sample.processes;
  const std::string uuid = plain(sample.uuid);
  for (const WorkerSlots::GpuPlace& place : places) {
    if (place.pid == 0) continue;
    const auto own = static_cast<uint32_t>(place.pid);
    const bool is_listed = std::erase(strangers, own) > 0;
    if (!is_listed && place.uuid == uuid) return std::nullopt;
    if (!is_listed && place.uuid.empty()) return std::nullopt;  // it still starts
  }
  return strangers;
}

std::vector<GpuNews> GpuWatch::news(const std::vector<WorkerSlots::GpuPlace>& places) {
  std::vector<GpuNews> all;
  std::map<uint32_t, GpuNews> now;
  for (const WorkerSlots::GpuPlace& place : places) {
    const auto before = told_.find(place.place);
    GpuNews news{place, before == told_.end() ? GpuVerdict() : before->second.now,
                 verdict_of(place)};
    if (news.before != news.now) all.push_back(news);
    if (news.now != GpuVerdict()) now[place.place] = std::move(news);
    if (before != told_.end()) told_.erase(before);
  }
  for (auto& [place, gone] : told_) all.push_back({gone.place, gone.now, {}});
  told_ = std::move(now);
  return all;
}

GpuVerdict GpuWatch::verdict_of(const WorkerSlots::GpuPlace& place) const {
  const auto history = histories_.find(uuid_of(place));
  return history == histories_.end() ? GpuVerdict() : history->second.verdict;
}

// GPUs change numbers when one falls off the bus, so the GPU that had the number first counts.
std::string GpuWatch::uuid_of(const WorkerSlots::GpuPlace& place) const {
  if (!place.uuid.empty()) return place.uuid;
  const auto known = of_number_.find(place.gpu);
  if (known != of_number_.end()) return known->second;
  return of_number_[place.gpu] = gpu_of_number_(place.gpu);
}

}  // namespace lockstep
