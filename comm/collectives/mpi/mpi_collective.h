// The operations of one generation over MPI. all_reduce:
//
//     exact  meet everyone -> partials to the rank that sums the slice -> sum own slice along the
//            tree -> [slices to everyone]: as the host backend does over TCP, and the same bits
//     fast   meet everyone -> sum own partials -> MPI_Iallreduce
//
// A generation that lacks ranks of the MPI world has no communicator of its own (making one
// blocks). Its fast sums go along the tree, too.
//
// Thread-safety: as Collective says.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/collectives/collective.h"
#include "comm/collectives/mpi/mpi_messages.h"

namespace lockstep::mpi {

class MpiCollective final : public Collective {
 public:
  // `buffer` holds the partials and outlives this object. Sums go to memory of the world (M3). It
  // may be null. Then only small operations work.
  MpiCollective(std::shared_ptr<Messages> messages, GradientBuffer* buffer, bool fast);
  ~MpiCollective() override;

  uint32_t rank() const override { return messages_->rank(); }
  uint32_t world_size() const override { return messages_->world_size(); }
  Status begin_step(const Tag& tag, const StepMerge& merge) override;
  Status all_reduce(const Tag& tag, const ElementRange& range) override;
  const float* reduced() const override { return reduced_; }
  Status broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) override;
  Status all_gather(const Tag& tag, std::span<const std::byte> mine,
                    std::span<std::byte> all) override;
  Status barrier(const Tag& tag) override;
  void check_next_sum(uint32_t owner) override { check_owner_ = owner; }
  std::optional<uint64_t> checked_sum() const override { return checked_sum_; }
  void abort() noexcept override { messages_->abort(); }

 private:
  Status check_tag(const Tag& tag) const;
  host::OpDescriptor next_operation(host::OpKind kind, const Tag& tag, const ElementRange& range);
  Status reduce_fast(const ElementRange& range);
  Status reduce_exact(const ElementRange& range);
  Status exchange_partials(const ElementRange& range, bool direct);
  Status exchange_results(const ElementRange& range);
  const float* leaf(const Leaf& leaf, const ElementRange& slice) const;
  std::span<std::byte> staged_bytes(size_t bytes);
  void check_sum(const ElementRange& range, bool direct);

  const std::shared_ptr<Messages> messages_;
  GradientBuffer* const buffer_;
  const bool fast_;

  uint64_t operations_ = 0;
  Step step_ = 0;
  StepMerge merge_;
  uint64_t merge_hash_ = 0;
  bool alone_ = false;  // one rank, one partial: nothing to add
  const float* reduced_ = nullptr;
  std::vector<const float*> received_;   // by rank: its partials over the own slice
  std::optional<uint32_t> check_owner_;  // of the slice to check in the next sum
  std::optional<uint64_t> checked_sum_;
};

}  // namespace lockstep::mpi
