// The operations of one generation over any mix of shared memory and TCP. The phases of all_reduce:
//
//     publish own partials -> meet everyone -> sum own slice -> [publish result -> take others'
//     slices] -> say "read"
//
// Only the steps in brackets let peers read a sum, and only the rank's own slice. So with
// sum_into() the rank copies that slice alone.
//
// Thread-safety: as Collective says.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/collectives/collective.h"
#include "comm/collectives/host/peers.h"
#include "comm/collectives/host/segment_buffer.h"
#include "comm/collectives/host/slices.h"
#include "comm/link/tcp_io.h"

namespace lockstep::host {

class GenerationCollective final : public Collective {
 public:
  // `gradient` may be null. Then only small operations work.
  GenerationCollective(std::shared_ptr<Peers> peers, std::shared_ptr<link::Segment> gradient,
                       const GradientGeometry& geometry, std::unique_ptr<link::TcpIo> io);
  ~GenerationCollective() override;

  uint32_t rank() const override { return peers_->rank(); }
  uint32_t world_size() const override { return peers_->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override;
  Status all_reduce(const Tag& tag, const ElementRange& range) override;
  const float* reduced() const override { return reduced_; }
  void sum_into(float* sums) override { room_ = sums; }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override;
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override;
  Status barrier(const Tag& tag) override;
  void check_next_sum(uint32_t owner) override { check_owner_ = owner; }
  std::optional<uint64_t> checked_sum() const override { return checked_sum_; }
  void abort() noexcept override { peers_->abort(); }
  int64_t broken_rank() const override { return peers_->broken_rank(); }

 private:
  Status check_tag(const Tag& tag) const;
  OpDescriptor next_operation(OpKind kind, const Tag& tag, const ElementRange& range);
  Status finish(Status status);

  Status reduce(const Tag& tag, const ElementRange& range);
  void send_partials(const OpDescriptor& op, const ElementRange& range, Algorithm algorithm);
  // Sums `slice`. `out` takes its first element.
  void sum_own(const ElementRange& slice, float* out);
  Status gather_results(const OpDescriptor& op, const ElementRange& range);
  const float* leaf(const Leaf& leaf, const ElementRange& slice) const;
  // In sum_check.cc. Runs before any rank may overwrite the partials.
  std::optional<uint64_t> check_sum(const ElementRange& range, bool direct, uint32_t owner);
  bool can_read_partials() const;
  std::span<const std::byte> own_bytes(const float* data, const ElementRange& range) const;

  // One step of a small operation. `mine` goes into the mailbox. root_only: only `root` sends.
  Status meet_with_mail(const OpDescriptor& op, std::span<const std::byte> mine,
                        size_t expected_of_root, bool root_only);
  const std::byte* mail_of(uint32_t rank, Mark mark);

  float* own_partial(uint32_t region) const;
  float* own_result() const;

  const std::shared_ptr<Peers> peers_;
  const std::shared_ptr<link::Segment> gradient_;
  const GradientGeometry geometry_;
  const std::unique_ptr<link::TcpIo> io_;
  const bool two_on_one_host_;

  uint64_t operations_ = 0;
  Mark last_reduce_ = 0;
  Step step_ = 0;
  StepMerge merge_;
  uint64_t merge_hash_ = 0;
  bool alone_ = false;  // one rank, one partial: nothing to add
  float* reduced_ = nullptr;
  float* room_ = nullptr;  // the caller's, for sums; null: the result of the gradient buffer
  std::optional<uint32_t> check_owner_;  // of the slice to check in the next sum
  std::optional<uint64_t> checked_sum_;
};

}  // namespace lockstep::host
