// Looks whether the GPUs of an agent's places are fit (metrics/node/gpu_health.h), and says what
// changed since it was asked before.
//
//   look(places) ── NVML ──▶ history of each GPU ──▶ news(places): unfit, to be watched, or ok
//
// A place's GPU is the one whose UUID its worker has told. Before that it is the one that the
// driver has at the place's number. If neither says, or NVML does not list it, as a slice of a GPU
// (MIG), the place is ok.
//
// Blocks: look() for at most `wait_ms` while NVML does not answer; nothing changes then. The
// driver's word about a place without a worker has no limit: its worker would ask the same next.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "deploy/agent/worker_slots.h"
#include "metrics/node/gpu_health.h"
#include "metrics/node/gpu_sampler.h"

namespace lockstep {

// The UUID, 32 hex digits, of the visible GPU of this number; empty: not known.
using GpuOfNumber = std::function<std::string(uint32_t number)>;
std::string gpu_of_driver(uint32_t number);

struct GpuNews {
  WorkerSlots::GpuPlace place;
  GpuVerdict before;
  GpuVerdict now;
};

class GpuWatch {
 public:
  // `is_alone`: all processes of the run on this machine are this agent's, so others are strangers.
  GpuWatch(const std::string& nvml_library, GpuOfNumber gpu_of_number, bool is_alone);

  void look(const std::vector<WorkerSlots::GpuPlace>& places, int64_t wait_ms);

  // A place that is not given any more is ok.
  std::vector<GpuNews> news(const std::vector<WorkerSlots::GpuPlace>& places);

  GpuVerdict verdict_of(const WorkerSlots::GpuPlace& place) const;

  // The verdict on each GPU of this machine that a look has seen, by NVML's UUID.
  std::map<std::string, Fitness> verdicts() const;

  Status status() const { return sampler_.status(); }  // why there is no NVML

 private:
  std::string uuid_of(const WorkerSlots::GpuPlace& place) const;
  std::optional<std::vector<uint32_t>> strangers_of(
      const GpuSample& sample, const std::vector<WorkerSlots::GpuPlace>& places) const;

  GpuSampler sampler_;
  const GpuOfNumber gpu_of_number_;
  const bool is_alone_;
  mutable std::map<uint32_t, std::string> of_number_;
  std::map<std::string, GpuHistory> histories_;  // by UUID, 32 hex digits
  std::map<std::string, std::string> of_nvml_;   // UUID by NVML's text for it
  std::map<uint32_t, GpuNews> told_;             // by place: those that are not ok
};

}  // namespace lockstep
