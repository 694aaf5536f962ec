// Progress of one generation. It raises this rank's flags, waits for its peers' flags, and ends the
// generation. A wait spins for a short time if there are cores to spare, then sleeps on the peer's
// doorbell. Every millisecond it checks who is still alive.
//
//     owner: flag, doorbell, any peer sleeping? wake       (all sequentially consistent, so that
//     peer:  sleeping, flag still old? sleep on doorbell    either it sees the flag or is woken)
//
// Thread-safety: abort(), is_aborted() and broken_rank() from any thread, the rest from one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/collectives/host/link.h"

namespace lockstep::link {
class Segment;
}

namespace lockstep::host {

class Peers {
 public:
  // `links` by rank, null for this rank.
  Peers(Generation generation, uint32_t rank, std::shared_ptr<link::Segment> control,
        std::vector<std::shared_ptr<Link>> links);

  Generation generation() const { return generation_; }
  uint32_t rank() const { return rank_; }
  uint32_t world_size() const { return static_cast<uint32_t>(links_.size()); }
  Link& link(uint32_t rank) { return *links_[rank]; }
  bool is_self(uint32_t rank) const { return rank == rank_; }
  ControlBlock& control();

  // Raises a flag of this rank.
  void raise(Flag flag, Mark mark);
  void announce(const OpDescriptor& op);  // raises `published`

  // Waits until the flag of every peer, or of one peer, has reached `mark`.
  Status wait_for_all(Flag flag, Mark mark);
  Status wait_for(uint32_t rank, Flag flag, Mark mark);
  // Waits until every peer has announced `op`, and compares (C4).
  Status meet(const OpDescriptor& op);

  void abort() noexcept;
  bool is_aborted() const { return aborted_.load(); }
  Status aborted_status() const;
  int64_t broken_rank() const { return broken_rank_.load(); }  // -1: none seen

 private:
  bool has_reached(uint32_t rank, Flag flag, Mark mark) const;
  Status check_alive(Flag flag, Mark mark, bool ask_kernel);
  Status lost(uint32_t rank, const std::string& how);
  Status sleep_until(uint32_t rank, Flag flag, Mark mark);

  const Generation generation_;
  const uint32_t rank_;
  const std::shared_ptr<link::Segment> control_;
  const std::vector<std::shared_ptr<Link>> links_;
  const int spins_;
  std::atomic<bool> aborted_{false};
  std::atomic<int64_t> broken_rank_{-1};
};

}  // namespace lockstep::host
