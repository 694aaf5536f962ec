// NCCL for the whole life of a worker. Each generation gets a Collective of its own, and the
// context ends the communicator of the generation before.
//
//     NcclContext nccl(api, clock, queue, buffer, Numerics::kExact);
//     auto collective = nccl.connect({generation, members, nodes, host, deadline_ms, is_closed});
//
// If every member was in the old communicator and still has it, the new one comes from it
// (ncclCommShrink). Else it comes from a new unique id, which rank 0 makes and the host's
// Collective broadcasts.
//
// INVARIANTS
//  X1 The old communicator is aborted, or finalized if its generation was never closed. A side
//     thread does it, and not before connect() of a newer generation: this call comes after
//     "start", when every survivor has closed its gate.
//  X2 All members agree on how to make the new communicator. One member that lost the old one makes
//     all begin anew.
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

// The ranks of `before` that are not in `now`. Nothing unless `now` is the rest of them in order.
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
  // Whether all members can shrink their communicator.
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
