// comm.backend auto: whether the members' devices can sum, found out by trying.
//
//   fit? ─▶ connect ─▶ all have? ─▶ one bucket ─▶ all right? ─▶ devices sum
//    └───────────────────────┴───────────────────────────┴──────▶ the host sums
//
// Each question is an all_gather over the host's Collective, so all members of a generation take
// the same way. The bucket is as large as a step's: a library moves small ones in other ways. Its
// values are made up, and every rank knows the values of all: it adds them itself, along the tree,
// and compares bit by bit. They repeat with a prime period, so one period is enough to add. Values
// of fast numerics are whole numbers, whose sum is the same in any order.
//
// INVARIANTS
//  V1 A trial ends within the limit, which grows with the world, and touches the host's Collective
//     by its questions only: the abort of a device's connection does not reach it.
//  V2 After a failure there is no other trial in this process, nor in a generation with one member
//     that knows of it. So a failure costs its time once in a run. A failure that a new process
//     would meet again is given to `remember`: wrong bits, and errors of this rank's own device,
//     before any trial was right. A time-out alone may be the moment's: the next generation tries
//     once more.
//  V3 A generation that is closed meanwhile, or a broken host's Collective, says nothing of the
//     devices: connect() returns the error, and the next generation tries.
//  V4 Ranks that do not fit do not try: two share a device, one has nothing to connect, or two have
//     other versions of the library. To ask costs nothing, so the next generation, which may have
//     other members, asks again.
//
// Thread-safety: one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/collectives/device_collective.h"

namespace lockstep {

// Copies to and from the device's memory, done when the call returns.
struct DeviceMemory {
  std::function<Status(float* to, std::span<const float> from)> upload;
  std::function<Status(std::span<float> to, const float* from)> download;
};

// The device on which a rank computes. Two slices of one device have the same bus.
struct DevicePlace {
  std::string bus;    // on its machine; empty: unknown
  std::string slice;  // anywhere
};

class DeviceTrial {
 public:
  using Connection = std::unique_ptr<DeviceCollective>;

  struct Parts {
    std::function<Result<Connection>(DeviceGeneration)> connect;  // DeviceComm's
    GradientBuffer* buffer = nullptr;                             // the device's; zeroed
    DeviceMemory memory;
    bool is_exact = true;
    const Clock& clock;
    int limit_ms = limits::kDeviceTrialMs;           // and for each rank
    int rank_limit_ms = limits::kDeviceTrialRankMs;  // so much more
    DevicePlace place;
    std::string library;                                   // its version
    std::function<void(const std::string&)> note;          // gets the outcome, when it changes
    std::function<void(const std::string& why)> remember;  // V2; may be empty
  };

  explicit DeviceTrial(Parts parts) : parts_(std::move(parts)) {}

  // This rank has nothing to connect, and says so in every generation (V4).
  void fail(std::string why) { own_why_ = std::move(why); }

  // Null: the host sums, because there are no peers, ranks do not fit, or the trial failed.
  // Errors as V3.
  Result<Connection> connect(DeviceGeneration next);

 private:
  Result<Connection> attempt(DeviceGeneration next);
  // Whether `mine` is ok on all ranks. If not, why_ says who and why.
  Result<bool> all_agree(const DeviceGeneration& in, const Status& mine);
  void note(const std::string& what);
  Status sum_one_bucket(DeviceCollective& devices, Generation generation);
  Status exchange(DeviceCollective& devices, Generation generation, const StepMerge& merge,
                  std::span<const float> mine, std::span<float> found);

  const Parts parts_;
  std::string own_why_;  // why this rank has nothing to connect; empty: it has
  std::string why_;      // which rank failed in a trial, and why; empty: none, or it is tried again
  std::string late_why_;  // of a trial that is tried again
  bool has_summed_ = false;
  bool has_timed_out_ = false;  // in the last trial, and in nothing else
  std::string noted_;
};

}  // namespace lockstep
