// Whether a GPU is fit to train on, from what NVML says at each look.
//
//   kOk ──finding──▶ kWatch ──it lasts──▶ kLeave ──kGpuCleanLooks without one──▶ kOk
//    └────────a finding that is sure at once────────▲
//
// One table (gpu_health.cc) has a row for each finding: its verdict at the first look, and from
// which look in a row on it is kLeave. A finding is a fact about the GPU. A value that NVML does
// not tell, because the driver is old or the card has no such part, is not known: no finding.
//
// Invariants
//   1. kLeave ends only after limits::kGpuCleanLooks looks in a row without a finding that can lead
//      to kLeave. So a GPU at a threshold does not flap.
//   2. A look that saw nothing of the GPU changes nothing.
//
// Thread-safety: pure functions and values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/node/gpu_reader.h"

namespace lockstep {

enum class Fitness : uint8_t { kOk, kWatch, kLeave };
const char* fitness_name(Fitness fitness);  // "ok", "watch", "leave"

struct GpuVerdict {
  Fitness fitness = Fitness::kOk;
  std::string reason = {};  // what was found, and what to do; empty: nothing
  bool operator==(const GpuVerdict&) const = default;
};

// Facts about one GPU at a look.
struct GpuLook {
  GpuSample sample;
  // Processes that compute there and are not the run's; none: not known.
  std::optional<std::vector<uint32_t>> strangers = {};
};

inline constexpr size_t kGpuFindings = 13;

// The outcome of the looks so far.
struct GpuHistory {
  GpuVerdict verdict;
  std::array<uint32_t, kGpuFindings> in_a_row = {};  // looks with each finding
  uint32_t clean = 0;                                // looks in a row, while kLeave
  std::optional<uint32_t> links = {};                // NVLinks that were active at some look
};

GpuHistory judge(GpuHistory before, const GpuLook& now);

}  // namespace lockstep
