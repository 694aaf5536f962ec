// NCCL for the whole life of a worker. Each generation gets a Collective of its own, on a
// communicator of its own, from a new unique id, which rank 0 makes and the host's Collective
// broadcasts.
//
//     NcclContext nccl(api, clock, queue, buffer, Numerics::kExact);
//     auto collective = nccl.connect({generation, members, nodes, host, deadline_ms, is_closed});
//
// INVARIANTS
//  X1 connect() comes after its rank has closed the older generation. It goes in this order: stop
//     the older communicator, wait at a barrier over the host's Collective until all ranks have,
//     free it, make the new one. So no rank frees memory that a peer's kernel still uses, no kernel
//     spins while the new communicator is made, and there is one set of NCCL's buffers at a time.
//  X2 A side thread stops and frees, because NCCL blocks there. connect() waits for it only until
//     its own deadline, or until the new generation is closed. The destructor waits for it.
//  X3 In fast mode the result is a window of NCCL's, if it can be one on every rank. The ranks
//     agree on that before and after, so no rank sums with a window while another has none. A
//     context whose window failed asks for none again. Nothing else is ever registered: a transfer
//     between registered and other memory hangs.
//  X4 A communicator whose making failed is stopped and freed like any other.
//  X5 If a rank's own side fails under load, again and again between the same members, the attempts
//     end: at connect() each rank says how often its own side has failed, and the rank with the
//     most failures fails for good (limits::kNcclSumFailures). Its side has failed if NCCL says so,
//     or if an adapter of its machine has lost its link meanwhile (adapter_links.h). If two ranks
//     share such a machine, the one whose GPU is near the adapter counts more.
//  X6 The WatchOptions (call_watch.h) hear of a call of this rank that does not return in a closed
//     generation, also while it is inside connect().
//
// Thread-safety: one thread at a time. Collectives may not outlive queue and buffer.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/ids.h"
#include "comm/collectives/nccl/adapter_links.h"
#include "comm/collectives/nccl/call_watch.h"
#include "comm/collectives/nccl/nccl_collective.h"
#include "comm/collectives/nccl/side_thread.h"

namespace lockstep::nccl {

class NcclContext {
 public:
  // `clock`, `queue` and `buffer` outlive the context. `may_map_result`: the result's memory is
  // from ncclMemAlloc().
  NcclContext(NcclApi api, const Clock& clock, DeviceQueue& queue, GradientBuffer& buffer,
              Numerics numerics, bool may_map_result, AdapterLinks links,
              const WatchOptions& watch = {});
  ~NcclContext();

  // Errors: the errors of Communicator::init and of the host's Collective. kInternal also if the
  // older communicator does not end, and if NCCL fails again and again between the same members:
  // then no peer's death is the cause. If it fails under load, only the rank at fault gets that,
  // and the others get kAborted with its name.
  Result<std::unique_ptr<DeviceCollective>> connect(DeviceGeneration next);

 private:
  Status end_older(DeviceGeneration& next, const Wait& wait);
  Status run_aside(std::function<void()> work, const Wait& wait);
  Status make(DeviceGeneration& next, const Wait& wait);
  Result<bool> make_and_map(DeviceGeneration& next, const Wait& wait);
  Result<bool> map_result(DeviceGeneration& next, const Wait& wait);
  void count_broken_sums(const DeviceGeneration& next);
  Status judge_broken_sums(const DeviceGeneration& next, std::span<const std::byte> counts);
  Status count_failure(const DeviceGeneration& next, const Status& why);

  const NcclApi api_;
  const Clock& clock_;
  DeviceQueue& queue_;
  GradientBuffer& buffer_;
  const Numerics numerics_;
  bool may_map_result_;
  std::shared_ptr<Communicator> current_;  // null: none, or freed
  std::vector<MemberId> failed_between_;   // the members between whom NCCL failed to connect last
  uint32_t failures_ = 0;                  // in a row, between them
  std::vector<MemberId> summed_between_;   // the members of current_
  AdapterLinks links_;                     // since the last connection was made
  uint8_t broke_here_ = 0;                 // how often this rank's side did, between them
  bool is_near_ = false;                   // to the adapter at fault, or NCCL says that it is here
  std::string trouble_;                    // the adapter's; empty: not known
  const std::shared_ptr<CallWatch> watch_;
  SideThread side_;
  WatchThread watching_;
};

}  // namespace lockstep::nccl
