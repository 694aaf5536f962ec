// The model of a Collective of one generation over the Fabric: publish, read, count, wait.
//
// An all-reduce of a bucket, as on the host backend:
//   publish: wait until every peer has counted my last partial read ─▶ write ─▶ raise the flag
//   reduce:  every peer's flag ─▶ read my slice of every partial ─▶ publish the slice ─▶ read all
//            slices ─▶ count
//
// INVARIANTS
//  D1 A rank rewrites a range only when every peer has counted it as read, or in a later
//     generation.
//  D2 A wait whose condition holds goes on. Other waits fail with kAborted once this rank or a peer
//     has closed the generation, or a peer's process or link is gone.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/base/status.h"
#include "tests/sim/world/fabric.h"
#include "tests/sim/world/task.h"
#include "tests/sim/world/waiter.h"

namespace lockstep::sim {

class World;

class Collective {
 public:
  struct Parts {
    World& world;
    Waiter& waiter;
    std::shared_ptr<Segment> own;
    uint64_t* bad_sums = nullptr;  // not 0: its sums are wrong, each time in another way
  };
  Collective(Parts parts, Generation generation, std::vector<MemberId> members, uint32_t rank);

  Generation generation() const { return generation_; }
  uint32_t world_size() const { return static_cast<uint32_t>(members_.size()); }

  // 0: no deadline. After the deadline the culprit is a rank that could not be reached.
  Task<Status> connect(int64_t deadline_ms);

  Task<Status> publish(uint32_t bucket, Segment::Partial partial);
  // The sum of every element, in order of elements, and the riders of all ranks together.
  struct Reduced {
    std::vector<uint64_t> sums;
    std::map<uint32_t, uint64_t> digests;  // by slot
    Votes votes{true, true, true};
    std::optional<uint64_t> checked_sum;  // hash of the checked rank's slice
  };
  // `checked`: the rank whose slice this rank adds up too (comm/collectives/cross_check.h).
  Task<Status> reduce(uint32_t bucket, Reduced* into, std::optional<uint32_t> checked = {});

  // From `root`: publishes its copy. Others read it.
  Task<Status> broadcast(uint32_t root, Segment::StateCopy* copy);

  Task<Status> barrier();

  // The culprit, if the last kAborted was a peer's fault; 0: none.
  MemberId culprit() const { return culprit_; }

 private:
  using Condition = std::function<bool(const Segment& peer)>;

  // Waits until `is_met` holds for every peer.
  Task<Status> all_peers(Condition is_met, const char* what);
  bool is_broken();
  const Segment& seen(uint32_t rank) const;
  std::optional<uint32_t> unreachable_rank() const;
  uint32_t owner_of(uint32_t element) const { return element % world_size(); }
  using Slots = std::map<uint32_t, std::array<uint64_t, kElements>>;
  std::map<uint32_t, uint64_t> add_up(const std::vector<Slots>& taken, uint32_t owner);
  Task<Status> read_partials(uint32_t bucket, Segment::Slice* slice, Reduced* into,
                             std::optional<uint32_t> checked);

  Parts parts_;
  const Generation generation_;
  const std::vector<MemberId> members_;
  const uint32_t rank_;
  std::vector<std::shared_ptr<Segment>> peers_;  // by rank, including our own
  std::vector<Tag> published_;                   // by bucket, in this generation
  std::vector<Tag> sliced_;
  uint64_t number_ = 0;
  MemberId culprit_ = 0;
};

}  // namespace lockstep::sim
