#include "worker/process/tried_comm.h"

#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "comm/base/limits.h"
#include "comm/collectives/device_trial.h"
#include "worker/device/device_marks.h"
#include "worker/process/trial_note.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5};

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
      : parts_(std::move(parts)),
        opened_(open()),
        note_(parts_.notes_directory, parts_.gpu.uuid, parts_.module->comm_library()),
        trial_(
            {.connect = [this](DeviceGeneration next) { return connect_opened(std::move(next)); },
             .buffer = buffer_,
             .memory = memory_of(*parts_.module),
             .is_exact = parts_.options.is_exact,
             .clock = *parts_.clock,
             .place = {parts_.gpu.pci, parts_.gpu.uuid},
             .library = parts_.module->comm_library(),
             .note = parts_.note,
             .remember = [this](const std::string& why) { remember(why); }}) {
    const std::string known = opened_.is_ok() ? note_.known() : opened_.message();
    if (known.empty()) return;
    trial_.fail(known);
    end_connection([] { return false; }, /*gives_back=*/true);
  }

  // Ends the connection first: it may still call the members that are destroyed next.
  ~TriedComm() override {
    comm_.reset();
    if (ending_.valid()) ending_.wait();
  }

  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next) override {
    const std::function<bool()> is_closed = next.is_closed;
    const bool has_peers = next.control->world_size() > 1;  // else it sums in this memory, alone
    auto made = trial_.connect(std::move(next));
    if (made.is_ok() && *made == nullptr) end_connection(is_closed, has_peers);
    if (made.is_ok() && *made != nullptr) has_summed_ = true;
    return made;
  }

 private:
  Status open() {
    LOCKSTEP_ASSIGN_OR_RETURN(buffer_, parts_.reserve());
    DeviceCommOptions options = parts_.options;
    options.on_stuck = [this](const Status& why) {
      if (!has_summed_) remember(why.message());
      if (parts_.options.on_stuck) parts_.options.on_stuck(why);
    };
    LOCKSTEP_ASSIGN_OR_RETURN(comm_, parts_.module->open_comm(*buffer_, std::move(options)));
    return Status::ok();
  }

  Result<std::unique_ptr<DeviceCollective>> connect_opened(DeviceGeneration next) {
    if (!has_ended())
      return Status(Code::kTimeout, "NCCL has not ended the older connection of this worker");
    if (comm_ == nullptr) LOCKSTEP_RETURN_IF_ERROR(open());
    return comm_->connect(std::move(next));
  }

  // True if nothing of a connection that was given up is there any more.
  bool has_ended() {
    if (!ending_.valid()) return true;
    if (ending_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    ending_.get();
    return true;
  }

  // C1, C2
  void end_connection(const std::function<bool()>& is_closed, bool gives_back) {
    if (comm_ != nullptr)
      ending_ =
          std::async(std::launch::async, [comm = std::move(comm_)]() mutable { comm.reset(); });
    const int64_t end_ms = parts_.clock->monotonic_ms() + limits::kNcclEndMs;
    while (!has_ended()) {
      if (is_closed() || parts_.clock->monotonic_ms() >= end_ms) return;  // at the next connect()
      (void)ending_.wait_for(kLookEvery);
    }
    if (gives_back) parts_.release();
  }

  void remember(const std::string& why) {
    if (const Status kept = note_.remember(why); !kept.is_ok() && parts_.note)
      parts_.note("comm.backend auto: workers that are started again try NCCL again: " +
                  kept.message());
  }

  const TriedCommParts parts_;
  GradientBuffer* buffer_ = nullptr;  // always the same once reserved
  std::unique_ptr<DeviceComm> comm_;  // null: not open, or given up
  const Status opened_;
  const TrialNote note_;
  DeviceTrial trial_;
  std::atomic<bool> has_summed_{false};  // a trial was right
  std::future<void> ending_;             // of a connection that was given up; its destructor waits
};

}  // namespace

std::unique_ptr<DeviceComm> make_tried_comm(TriedCommParts parts) {
  return std::make_unique<TriedComm>(std::move(parts));
}

}  // namespace lockstep
