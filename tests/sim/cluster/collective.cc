#include "tests/sim/cluster/collective.h"

#include "comm/base/planted_bug.h"
#include "comm/base/prng.h"
#include "tests/sim/world/world.h"

namespace lockstep::sim {

Collective::Collective(Parts parts, Generation generation, std::vector<MemberId> members,
                       uint32_t rank)
    : parts_(std::move(parts)),
      generation_(generation),
      members_(std::move(members)),
      rank_(rank),
      published_(kBuckets),
      sliced_(kBuckets) {
  parts_.world.fabric.join(generation_, members_[rank_], parts_.own);
}

const Segment& Collective::seen(uint32_t rank) const {
  return parts_.world.fabric.seen_by(parts_.own->process, *peers_[rank]);
}

// Ranks call lower ones and wait for higher ones (comm/collectives/host/host_context.cc). Both
// sides end a handshake together: a peer that has met all has met this rank, whatever was cut
// since.
std::optional<uint32_t> Collective::unreachable_rank() const {
  const Fabric& fabric = parts_.world.fabric;
  for (uint32_t rank = 0; rank < members_.size(); ++rank) {
    const auto peer = fabric.find(generation_, members_[rank]);
    if (peer == nullptr) return rank;
    const bool has_met = peer->has_met_all_of == generation_;
    if (!has_met && !fabric.can_connect(peer->process, parts_.own->process)) return rank;
  }
  return std::nullopt;
}

bool Collective::is_broken() {
  if (parts_.own->closed_through >= generation_) return true;
  for (uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const Segment& peer = seen(rank);
    const bool is_closed = peer.closed_through >= generation_;
    const bool is_gone =
        !peer.is_alive || parts_.world.fabric.is_cut(peer.process, parts_.own->process);
    // A peer that closed the generation is not broken.
    if (is_gone && !is_closed) culprit_ = members_[rank];
    if (is_gone || is_closed) return true;
  }
  return false;
}

Task<Status> Collective::all_peers(Condition is_met, const char* what) {
  culprit_ = 0;
  const auto all_met = [this, &is_met] {
    for (uint32_t rank = 0; rank < peers_.size(); ++rank)
      if (!is_met(seen(rank))) return false;
    return true;
  };
  const std::function<bool()> is_over = [this, all_met] { return all_met() || is_broken(); };
  co_await parts_.waiter.until(is_over);
  if (all_met()) co_return Status::ok();
  co_return Status(Code::kAborted, std::string(what) + " was aborted");
}

Task<Status> Collective::connect(int64_t deadline_ms) {
  const int64_t until_ms = parts_.world.loop.now_ms() + deadline_ms;
  const auto are_here = [this] { return !unreachable_rank(); };
  const auto is_late = [this, deadline_ms, until_ms] {
    return deadline_ms > 0 && parts_.world.loop.now_ms() >= until_ms;
  };
  const std::function<bool()> is_over = [this, are_here, is_late] {
    return are_here() || is_late() || parts_.own->closed_through >= generation_;
  };
  if (deadline_ms > 0) parts_.world.poke_after(deadline_ms);
  co_await parts_.waiter.until(is_over);
  if (parts_.own->closed_through >= generation_)
    co_return Status(Code::kAborted, "connect was aborted");
  if (const auto rank = unreachable_rank()) {
    culprit_ = members_[*rank];
    co_return Status(Code::kAborted, "connect ran into its deadline");
  }
  parts_.own->has_met_all_of = generation_;
  for (const MemberId member : members_)
    peers_.push_back(parts_.world.fabric.find(generation_, member));
  co_await parts_.waiter.sleep(0, 3);
  co_return Status::ok();
}

Task<Status> Collective::publish(uint32_t bucket, Segment::Partial partial) {
  const Tag last = published_[bucket];
  const Condition has_read = [this, bucket, last](const Segment& peer) {
    return peer.read[bucket] >= last || peer.process == parts_.own->process;
  };
  if (last.generation != 0) LOCKSTEP_CO_RETURN_IF_ERROR(all_peers(has_read, "waiting for readers"));
  partial.tag = {generation_, ++number_};
  published_[bucket] = partial.tag;
  parts_.own->partials[bucket] = std::move(partial);
  parts_.world.fabric.changed();
  co_return Status::ok();
}

std::map<uint32_t, uint64_t> Collective::add_up(const std::vector<Slots>& taken, uint32_t owner) {
  std::map<uint32_t, uint64_t> sums;
  for (uint32_t element = 0; element < kElements; ++element) {
    if (owner_of(element) != owner) continue;
    uint64_t sum = 0;
    for (const Slots& slots : taken)
      for (const auto& [slot, values] : slots) sum = add_slot(sum, slot, values[element]);
    if (parts_.bad_sums != nullptr && *parts_.bad_sums != 0) sum ^= (*parts_.bad_sums)++;
    sums[element] = sum;
  }
  return sums;
}

Task<Status> Collective::read_partials(uint32_t bucket, Segment::Slice* slice, Reduced* into,
                                       std::optional<uint32_t> checked) {
  std::vector<Slots> taken(peers_.size());
  for (size_t i = 0; i < peers_.size(); ++i) {
    // Each rank begins with itself, as the tiles do, so that not all read the same peer at once.
    const auto peer = static_cast<uint32_t>((rank_ + i) % peers_.size());
    const Segment::Partial partial = seen(peer).partials[bucket];
    taken[peer] = partial.slots;
    into->votes.stop &= partial.votes.stop;
    into->votes.change &= partial.votes.change;
    into->votes.finish &= partial.votes.finish;
    into->digests.insert(partial.digests.begin(), partial.digests.end());
    co_await parts_.waiter.sleep(0, 1);
  }
  slice->sums = add_up(taken, rank_);
  if (checked) {
    uint64_t hash = 1;
    const auto sums = *checked == rank_ ? slice->sums : add_up(taken, *checked);
    for (const auto& [element, sum] : sums) hash = mix64(hash ^ sum);
    into->checked_sum = hash;
  }
  co_return Status::ok();
}

Task<Status> Collective::reduce(uint32_t bucket, Reduced* into, std::optional<uint32_t> checked) {
  const Tag tag = published_[bucket];
  const Condition is_published = [bucket, tag](const Segment& peer) {
    return peer.partials[bucket].tag == tag;
  };
  LOCKSTEP_CO_RETURN_IF_ERROR(all_peers(is_published, "the reduction of a bucket"));
  Segment::Slice slice;
  LOCKSTEP_CO_RETURN_IF_ERROR(read_partials(bucket, &slice, into, checked));
  parts_.own->read[bucket] = tag;
  if (LOCKSTEP_BUG(kRewriteBeforeAllHaveRead)) parts_.own->partials[bucket].slots.clear();

  const Tag last = sliced_[bucket];
  const Condition has_read = [bucket, last](const Segment& peer) {
    return peer.sums_read[bucket] >= last;
  };
  if (last.generation != 0) LOCKSTEP_CO_RETURN_IF_ERROR(all_peers(has_read, "waiting for readers"));
  slice.tag = tag;
  sliced_[bucket] = tag;
  parts_.own->slices[bucket] = slice;
  parts_.world.fabric.changed();

  const Condition is_sliced = [bucket, tag](const Segment& peer) {
    return peer.slices[bucket].tag == tag;
  };
  LOCKSTEP_CO_RETURN_IF_ERROR(all_peers(is_sliced, "the gathering of a bucket"));
  parts_.world.moment(Moment::kReading, parts_.own->process);
  std::map<uint32_t, uint64_t> all;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const auto peer = static_cast<uint32_t>((rank_ + i) % peers_.size());
    for (const auto& [element, sum] : seen(peer).slices[bucket].sums) all[element] = sum;
    co_await parts_.waiter.sleep(0, 1);
  }
  for (const auto& [element, sum] : all) into->sums.push_back(sum);
  parts_.own->sums_read[bucket] = tag;
  parts_.world.fabric.changed();
  co_return Status::ok();
}

Task<Status> Collective::broadcast(uint32_t root, Segment::StateCopy* copy) {
  const Tag tag{generation_, ++number_};
  if (rank_ == root) {
    copy->tag = tag;
    parts_.own->copy = *copy;
    parts_.world.fabric.changed();
    co_return Status::ok();
  }
  const Condition is_published = [this, root, tag](const Segment& peer) {
    return peer.process != peers_[root]->process || peer.copy.tag == tag;
  };
  LOCKSTEP_CO_RETURN_IF_ERROR(all_peers(is_published, "the transfer of the state"));
  *copy = seen(root).copy;
  co_return Status::ok();
}

Task<Status> Collective::barrier() {
  const Tag tag{generation_, ++number_};
  parts_.own->barrier = tag;
  parts_.world.fabric.changed();
  const Condition is_here = [tag](const Segment& peer) { return peer.barrier >= tag; };
  return all_peers(is_here, "a barrier");
}

}  // namespace lockstep::sim
