// The places of an agent whose GPUs are not fit: tells the log and the coordinator, and lets
// WorkerSlots hold them.
//
// Invariants
//   1. A notice stands from the look that finds a place unfit to the look that finds it fit, and
//      repeat() sends those that stand.
//   2. A held place is started by the look that finds it fit, or by start_held().
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "comm/base/log.h"
#include "comm/wire/control.pb.h"
#include "deploy/agent/gpu_watch.h"
#include "deploy/agent/worker_slots.h"

namespace lockstep {

class GpuPlaces {
 public:
  struct Options {
    std::string nvml_library;
    GpuOfNumber gpu_of_number;
    bool is_alone = true;  // GpuWatch
    bool acts = true;      // places are held; else it is told only
  };
  GpuPlaces(Options options, WorkerSlots& workers, Logger& logger,
            std::function<void(uint32_t place)> start,
            std::function<void(const wire::Envelope& notice)> send);

  // Looks, for at most `wait_ms` if NVML does not answer, and tells what changed.
  void look(int64_t wait_ms);
  // Tells what the looks so far say about places that are new, or gone.
  void tell();
  void repeat() const;
  // The coordinator needs workers at these places, although they are not fit.
  void start_held(const google::protobuf::RepeatedField<uint32_t>& local_ranks);
  std::map<std::string, Fitness> verdicts() const { return watch_.verdicts(); }

 private:
  void on_news(const GpuNews& news);

  const bool acts_;
  WorkerSlots& workers_;
  Logger& logger_;
  const std::function<void(uint32_t)> start_;
  const std::function<void(const wire::Envelope&)> send_;
  GpuWatch watch_;
  bool has_told_of_nvml_ = false;
  std::map<uint32_t, wire::Envelope> notices_;  // that stand, by local rank
};

}  // namespace lockstep
