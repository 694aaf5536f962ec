#include "metrics/node/gpu_health.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "metrics/node/nvml_api.h"

namespace lockstep {
namespace {

// The input of a finding: this look, and the links that were active before.
struct Facts {
  const GpuLook& look;
  uint32_t links = 0;
};

bool is_throttled(const Facts& facts, unsigned long long bits) {
  return (facts.look.sample.throttle_reasons.value_or(0) & bits) != 0;
}

bool is_lost(const Facts& facts) {
  return facts.look.sample.is_lost;
}
bool has_remap_failed(const Facts& facts) {
  return facts.look.sample.row_remaps.value_or(RowRemaps{}).has_failed;
}
bool is_remap_pending(const Facts& facts) {
  return facts.look.sample.row_remaps.value_or(RowRemaps{}).is_pending;
}
bool has_uncorrected(const Facts& facts) {
  return facts.look.sample.ecc_uncorrected_errors.value_or(0) > 0;
}
bool has_reset_xid(const Facts& facts) {
  return facts.look.sample.xid_errors.value_or(XidErrors{}).reset != 0;
}
bool has_other_xid(const Facts& facts) {
  return facts.look.sample.xid_errors.value_or(XidErrors{}).of_gpu > 0;
}
bool has_fabric_failed(const Facts& facts) {
  const auto& fabric = facts.look.sample.fabric;
  return fabric && fabric->state == nvml::kFabricCompleted && fabric->error != nvml::kSuccess;
}
bool is_fabric_waiting(const Facts& facts) {
  const auto& fabric = facts.look.sample.fabric;
  return fabric && fabric->state != nvml::kFabricCompleted;
}
bool has_lost_link(const Facts& facts) {
  const auto& active = facts.look.sample.active_links;
  return active && (facts.links & ~*active) != 0;
}
bool is_slowed_by_hardware(const Facts& facts) {
  return is_throttled(facts, nvml::kHwSlowdown | nvml::kHwThermalSlowdown | nvml::kHwPowerBrake);
}
bool is_slowed_by_heat(const Facts& facts) {
  return is_throttled(facts, nvml::kSwThermalSlowdown);
}
bool has_stranger(const Facts& facts) {
  return facts.look.strangers && !facts.look.strangers->empty();
}
bool is_not_persistent(const Facts& facts) {
  return !facts.look.sample.is_persistent.value_or(true);
}

constexpr uint32_t kNever = 0;
constexpr uint32_t kOnce = 1;
constexpr uint32_t kTwice = 2;
constexpr uint32_t kThrice = 3;

struct Row {
  bool (*is_found)(const Facts&);
  uint32_t leaves_at;  // the look in a row from which on it is kLeave; before, kWatch
  const char* reason;
};

// The first row that is found gives the reason. NVIDIA's DCGM isolates a GPU for pending and
// failed remaps, uncorrected errors and XIDs alike.
//
// Two reasons for lower clocks are in no row, because healthy GPUs have them all the time: a GPU
// that computes much runs into its power cap (an H100 under load always does), and idle ones or
// those with clocks set by hand run slower. Software's thermal slowdown takes off little, and slots
// follow the speed (cluster.rebalance), so it never makes a worker leave. Hardware's halves the
// clocks at least.
constexpr std::array<Row, kGpuFindings> kRows = {{
    {is_lost, kOnce,
     "it fell off the bus; end its agent, reset the GPU or the machine, and "
     "start the agent again"},
    {has_remap_failed, kOnce, "its memory has no spare rows left for bad ones; replace the GPU"},
    {is_remap_pending, kOnce,
     "rows of its memory wait to be replaced by spare ones; end its agent, reset the GPU "
     "(nvidia-smi --gpu-reset), and start the agent again"},
    {has_uncorrected, kOnce,
     "its memory had errors that ECC could not correct; end its agent, reset the "
     "GPU (nvidia-smi --gpu-reset), and start the agent again"},
    {has_reset_xid, kOnce,
     "the driver reported an XID that asks for a reset; see dmesg, end its agent, "
     "reset the GPU, and start the agent again"},
    {has_fabric_failed, kOnce,
     "it could not join the NVSwitch fabric; see the log of nvidia-fabricmanager"},
    {is_fabric_waiting, kThrice,
     "it has not joined the NVSwitch fabric yet; see whether nvidia-fabricmanager runs"},
    {has_lost_link, kTwice, "an NVLink that was active is down; see nvidia-smi nvlink --status"},
    {is_slowed_by_hardware, limits::kGpuLastingLooks,
     "its hardware lowers the clocks, for heat or for the power supply; see nvidia-smi -q -d "
     "PERFORMANCE,TEMPERATURE, fans and power"},
    {is_slowed_by_heat, kNever, "it is warm, and its clocks are lowered; look at its cooling"},
    {has_other_xid, kNever, "the driver reported an XID that no program causes; see dmesg"},
    {has_stranger, kNever, "another process computes on it; see nvidia-smi"},
    {is_not_persistent, kNever,
     "its driver unloads between two programs, so workers start slowly and counts of errors are "
     "lost; start nvidia-persistenced"},
}};

// Which number, link or process it was.
std::string detail_of(const Row& row, const Facts& facts) {
  const GpuSample& sample = facts.look.sample;
  if (row.is_found == has_reset_xid) return "XID " + std::to_string(sample.xid_errors->reset);
  if (row.is_found == has_other_xid) return "XID " + std::to_string(sample.xid_errors->last);
  if (row.is_found == has_stranger) return "pid " + std::to_string(facts.look.strangers->front());
  return "";
}

std::string reason_of(const Row& row, const Facts& facts) {
  const std::string detail = detail_of(row, facts);
  return row.reason + (detail.empty() ? "" : " (" + detail + ")");
}

bool can_leave(const Row& row) {
  return row.leaves_at != kNever;
}

}  // namespace

const char* fitness_name(Fitness fitness) {
  switch (fitness) {
    case Fitness::kOk:
      return "ok";
    case Fitness::kWatch:
      return "watch";
    case Fitness::kLeave:
      return "leave";
  }
  return "?";
}

GpuHistory judge(GpuHistory before, const GpuLook& now) {
  GpuHistory after = std::move(before);
  const Facts facts{now, after.links.value_or(0)};
  GpuVerdict found;
  bool is_clean = true;
  for (size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    after.in_a_row[i] = row.is_found(facts) ? after.in_a_row[i] + 1 : 0;
    if (after.in_a_row[i] == 0) continue;
    is_clean = is_clean && !can_leave(row);
    const bool leaves = can_leave(row) && after.in_a_row[i] >= row.leaves_at;
    const Fitness fitness = leaves ? Fitness::kLeave : Fitness::kWatch;
    if (fitness > found.fitness) found = {fitness, reason_of(row, facts)};
  }
  if (const auto& active = now.sample.active_links) after.links = facts.links | *active;
  const bool was_out = after.verdict.fitness == Fitness::kLeave;
  after.clean = was_out && is_clean ? after.clean + 1 : 0;
  const bool stays_out =
      was_out && found.fitness != Fitness::kLeave && after.clean < limits::kGpuCleanLooks;
  if (!stays_out) after.verdict = std::move(found);
  return after;
}

}  // namespace lockstep
