#include "comm/collectives/host/peers.h"

#include <utility>

#include "comm/collectives/host/futex.h"
#include "comm/environment/usable_cores.h"
#include "comm/link/shared_segment.h"

namespace lockstep::host {
namespace {

constexpr int kSpins = 1'000;             // about 20 to 40 microseconds
constexpr int64_t kLookAroundUs = 1'000;  // a lost wake-up or a dead peer costs no more

std::string describe(const OpDescriptor& op) {
  static constexpr const char* kNames[] = {"nothing", "all_reduce", "broadcast", "all_gather",
                                           "barrier"};
  const auto kind = static_cast<size_t>(op.kind);
  return std::string(kind < 5 ? kNames[kind] : "an unknown operation") + " (step " +
         std::to_string(op.step) + ", phase " + std::to_string(op.phase) + ", bucket " +
         std::to_string(op.bucket) + ", " + std::to_string(op.bytes) + " bytes, elements " +
         std::to_string(op.begin) + " to " + std::to_string(op.end) + ")";
}

}  // namespace

Peers::Peers(Generation generation, uint32_t rank, std::shared_ptr<link::Segment> control,
             std::vector<std::shared_ptr<Link>> links)
    : generation_(generation),
      rank_(rank),
      control_(std::move(control)),
      links_(std::move(links)),
      // Spinning on a core that the awaited rank needs only delays it.
      spins_(static_cast<int>(links_.size()) <= static_cast<int>(usable_cores()) ? kSpins : 0) {}

ControlBlock& Peers::control() {
  return *static_cast<ControlBlock*>(control_->data());
}

void Peers::raise(Flag flag, Mark mark) {
  FlagBlock& mine = control().flags;
  (mine.*flag).store(mark);
  mine.doorbell.fetch_add(1);
  for (const auto& link : links_) {
    if (link != nullptr && link->flags().sleeping.load() != 0) {
      futex_wake(mine.doorbell);
      return;
    }
  }
}

void Peers::announce(const OpDescriptor& op) {
  control().flags.ops[op.mark % kOpRing] = op;
  raise(&FlagBlock::published, op.mark);
}

Status Peers::wait_for_all(Flag flag, Mark mark) {
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (!is_self(r)) LOCKSTEP_RETURN_IF_ERROR(wait_for(r, flag, mark));
  }
  return is_aborted() ? aborted_status() : Status::ok();
}

Status Peers::wait_for(uint32_t rank, Flag flag, Mark mark) {
  for (int i = 0; i <= spins_; ++i) {
    if (has_reached(rank, flag, mark)) return Status::ok();
    cpu_relax();
  }
  control().flags.sleeping.store(1);
  Status status = sleep_until(rank, flag, mark);
  control().flags.sleeping.store(0);
  return status;
}

Status Peers::sleep_until(uint32_t rank, Flag flag, Mark mark) {
  const std::atomic<uint32_t>& doorbell = links_[rank]->flags().doorbell;
  for (bool slept = false;; slept = true) {
    const uint32_t seen = doorbell.load();
    if (has_reached(rank, flag, mark)) return Status::ok();
    if (is_aborted()) return aborted_status();
    LOCKSTEP_RETURN_IF_ERROR(check_alive(flag, mark, slept));
    futex_wait(doorbell, seen, kLookAroundUs);
  }
}

bool Peers::has_reached(uint32_t rank, Flag flag, Mark mark) const {
  const Mark now = (links_[rank]->flags().*flag).load();
  return now >= mark && generation_of(now) == generation_;
}

// Checks that every peer that this operation still needs is alive. A peer that has given everything
// may leave.
Status Peers::check_alive(Flag flag, Mark mark, bool ask_kernel) {
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (is_self(r) || has_reached(r, flag, mark)) continue;
    const FlagBlock& flags = links_[r]->flags();
    const auto has_closed = [&] {
      return flags.closed.load() >= generation_ ||
             generation_of((flags.*flag).load()) > generation_;
    };
    const bool gone = !has_closed() && ask_kernel && links_[r]->hung_up();
    // The peer may have raised the flag, or closed, just before it left.
    if ((!has_closed() && !gone) || has_reached(r, flag, mark)) continue;
    if (!has_closed()) {
      const char* why = links_[r]->why_gone();
      return lost(r, why != nullptr ? why : "is gone: its connection broke");
    }
    return Status(Code::kAborted, "rank " + std::to_string(r) + " has closed generation " +
                                      std::to_string(generation_));
  }
  return Status::ok();
}

Status Peers::lost(uint32_t rank, const std::string& how) {
  int64_t none = -1;
  broken_rank_.compare_exchange_strong(none, rank);
  return Status(Code::kAborted, "rank " + std::to_string(rank) + " " + how);
}

Status Peers::meet(const OpDescriptor& op) {
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (is_self(r)) continue;
    LOCKSTEP_RETURN_IF_ERROR(wait_for(r, &FlagBlock::published, op.mark));
    const OpDescriptor& theirs = links_[r]->flags().ops[op.mark % kOpRing];
    if (theirs == op) continue;
    std::string said = "ranks disagree: rank " + std::to_string(rank_) + " is in " + describe(op) +
                       ", rank " + std::to_string(r) + " in " + describe(theirs);
    if (theirs.merge_hash != op.merge_hash)
      said += "; they take other slots for a rank's, or their GPUs were in different operations";
    return Status(Code::kInternal, said);
  }
  return is_aborted() ? aborted_status() : Status::ok();
}

void Peers::abort() noexcept {
  aborted_.store(true);
  FlagBlock& mine = control().flags;
  Generation closed = mine.closed.load();
  while (closed < generation_ && !mine.closed.compare_exchange_weak(closed, generation_)) {
  }
  mine.doorbell.fetch_add(1);
  futex_wake(mine.doorbell);
  // Our own thread may sleep on a peer's doorbell: wake it before anything that takes longer.
  for (const auto& link : links_)
    if (link != nullptr) futex_wake(link->flags().doorbell);
  for (const auto& link : links_)
    if (link != nullptr) link->shut_down();
}

Status Peers::aborted_status() const {
  return Status(Code::kAborted, "generation " + std::to_string(generation_) +
                                    " was closed here; wait for the next start");
}

}  // namespace lockstep::host
