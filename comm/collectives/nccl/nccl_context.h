// NCCL for the whole life of a worker: each generation gets a Collective of its own, and the
// communicator of the one before is ended.
//
//     NcclContext nccl(api, clock, queue, buffer, Numerics::kExact);
//     auto collective = nccl.connect({generation, members, nodes, host, deadline_ms, is_closed});
//
// A new communicator is made from the old one (ncclCommShrink) where every member was in it and
// still has it; else from a new unique id, which rank 0 makes and the host's Collective broadcasts.
//
// INVARIANTS
//  X1 The old communicator is aborted, or finalized if its generation was never closed, on a side
//     thread, and not before connect() of a newer generation: that comes after "start", when every
//     survivor has closed its gate.
//  X2 How the new one is made is agreed by all members: one that lost the old one makes all begin
//     anew.
//
// Thread-safety: one thread at a time. Collectives may not outlive queue and buffer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/ids.h"
#include "comm/collectives/nccl/nccl_collective.h"
#include "comm/collectives/nccl/side_thread.h"

namespace lockstep::nccl {

// Ranks of `before` that are not in `now`; nothing unless `now` is the rest of them in order.
std::optional<std::vector<int>> left_out(const std::vector<MemberId>& before,
                                         const std::vector<MemberId>& now);

class NcclContext {
 public:
  // `clock`, `queue` and `buffer` outlive the context.
  NcclContext(NcclApi api, const Clock& clock, DeviceQueue& queue, GradientBuffer& buffer,
              Numerics numerics);
  ~NcclContext();

  // Errors: those of Communicator::init and of the host's Collective.
  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next);

 private:
  struct Current {
    std::vector<MemberId> members;
    Generation generation = 0;
    std::shared_ptr<Communicator> communicator;
    Closed closed;
  };

  Wait wait_for(const Closed& closed, int deadline_ms) const;
  // What all members have said about the communicator they could shrink.
  Result<bool> all_can_shrink(DeviceGeneration& next, bool can) const;
  Result<std::unique_ptr<Communicator>> make(DeviceGeneration& next, const Closed& closed);
  void retire(int deadline_ms);

  const NcclApi api_;
  const Clock& clock_;
  DeviceQueue& queue_;
  GradientBuffer& buffer_;
  const Numerics numerics_;
  int last_deadline_ms_ = 0;
  std::optional<Current> current_;
  SideThread side_;
};

}  // namespace lockstep::nccl
