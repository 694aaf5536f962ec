#include "worker/program/tried_comm.h"

#include <utility>

#include "comm/collectives/device_trial.h"
#include "worker/engine/device/device_marks.h"

namespace lockstep {
namespace {

Status copy_now(DeviceModule& module, DeviceLane lane, void* to, const void* from, size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(module.copy(lane, to, from, bytes));
  LOCKSTEP_RETURN_IF_ERROR(module.mark(kFinished, lane));
  return module.wait(kFinished);
}

DeviceMemory memory_of(DeviceModule& module) {
  return {[&module](float* to, std::span<const float> from) {
            return copy_now(module, DeviceLane::kGradients, to, from.data(), from.size_bytes());
          },
          [&module](std::span<float> to, const float* from) {
            return copy_now(module, DeviceLane::kCompute, to.data(), from, to.size_bytes());
          }};
}

class TriedComm final : public DeviceComm {
 public:
  explicit TriedComm(TriedCommParts parts)
      : opened_(parts.module->open_comm(*parts.buffer, parts.is_exact)),
        trial_({.connect =
                    [this](DeviceGeneration next) { return (*opened_)->connect(std::move(next)); },
                .buffer = parts.buffer,
                .memory = memory_of(*parts.module),
                .is_exact = parts.is_exact,
                .clock = *parts.clock,
                .note = std::move(parts.note)}) {
    if (!opened_.is_ok()) trial_.fail(opened_.status().message());
  }

  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override {
    return trial_.connect(std::move(next));
  }

 private:
  const Result<std::unique_ptr<DeviceComm>> opened_;
  DeviceTrial trial_;
};

}  // namespace

std::unique_ptr<DeviceComm> make_tried_comm(TriedCommParts parts) {
  return std::make_unique<TriedComm>(std::move(parts));
}

}  // namespace lockstep
