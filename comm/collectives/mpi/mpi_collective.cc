#include "comm/collectives/mpi/mpi_collective.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/check_generation.h"
#include "comm/collectives/cross_check.h"
#include "comm/collectives/host/slices.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep::mpi {
namespace {

using host::OpDescriptor;
using host::OpKind;

std::span<const std::byte> bytes_of(const float* data, const ElementRange& range) {
  return std::as_bytes(std::span(data + range.begin, range.size()));
}
std::span<std::byte> room_for(float* data, uint64_t elements) {
  return std::as_writable_bytes(std::span(data, elements));
}

}  // namespace

MpiCollective::MpiCollective(std::shared_ptr<Messages> messages, GradientBuffer* buffer, bool fast)
    : messages_(std::move(messages)),
      buffer_(buffer),
      fast_(fast && messages_->is_whole_world()),
      reduced_(messages_->sums()) {}

MpiCollective::~MpiCollective() {
  messages_->close();
}

// Every operation ends when peers have taken everything that this rank sent, so there is no wait
// (C3).
Status MpiCollective::begin_step(const Tag& tag, const StepMerge& merge) {
  LOCKSTEP_CHECK(buffer_ != nullptr, "begin_step needs a gradient buffer");
  LOCKSTEP_CHECK(merge.ranks.size() == world_size(), "one schedule per rank");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  step_ = tag.step;
  merge_ = merge;
  merge_hash_ = hash_of(merge);
  const std::vector<Leaf>& leaves = merge.gradients.leaves;
  alone_ = world_size() == 1 && leaves.size() == 1 && merge.control.leaves.size() == 1;
  reduced_ = alone_ ? buffer_->partial(leaves[0].region) : messages_->sums();
  return Status::ok();
}

Status MpiCollective::all_reduce(const Tag& tag, const ElementRange& range) {
  LOCKSTEP_CHECK(buffer_ != nullptr, "all_reduce needs a gradient buffer");
  LOCKSTEP_CHECK(range.begin <= range.end && range.end <= buffer_->layout().elements &&
                     range.begin % kCutElements == 0 && range.end % kCutElements == 0,
                 "an operation's range is cut at multiples of kCutElements");
  LOCKSTEP_CHECK(tag.step == step_ && !merge_.ranks.empty(), "all_reduce of a step not begun");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  if (alone_) return Status::ok();
  OpDescriptor op = next_operation(OpKind::kAllReduce, tag, range);
  op.merge_hash = host::agreed_hash(merge_hash_, tag);
  LOCKSTEP_RETURN_IF_ERROR(messages_->meet(op));
  return fast_ ? reduce_fast(range) : reduce_exact(range);
}

Status MpiCollective::reduce_fast(const ElementRange& range) {
  StepMerge own;
  const auto add = [](const Leaf& leaf, SumProgram* program) {
    program->ops.push_back(static_cast<int32_t>(program->leaves.size()));
    program->leaves.push_back(leaf);
    if (program->leaves.size() > 1) program->ops.push_back(SumProgram::kAdd);
    program->depth = std::min<uint32_t>(2, static_cast<uint32_t>(program->leaves.size()));
  };
  for (const FinalPartial& partial : merge_.ranks[rank()].partials) {
    add({rank(), partial.region}, &own.control);
    if (!partial.empty) add({rank(), partial.region}, &own.gradients);
  }
  float* out = messages_->sums() + range.begin;
  const auto leaf_at = [&](const Leaf& each) {
    return buffer_->partial(each.region) + range.begin;
  };
  sum_slice(own, buffer_->layout().statistics, range, leaf_at, out);
  messages_->all_reduce(std::span(out, range.size()));
  checked_sum_.reset();  // MPI does not tell who has summed what
  check_owner_.reset();
  return messages_->wait();
}

Status MpiCollective::reduce_exact(const ElementRange& range) {
  const bool direct = host::choose_algorithm(world_size(), range.size() * sizeof(float), false) ==
                      host::Algorithm::kDirect;
  const ElementRange slice = direct ? range : host::slice_of(range, rank(), world_size());
  LOCKSTEP_RETURN_IF_ERROR(exchange_partials(range, direct));
  const auto leaf_at = [&](const Leaf& each) { return leaf(each, slice); };
  sum_slice(merge_, buffer_->layout().statistics, slice, leaf_at, messages_->sums() + slice.begin);
  if (!direct) LOCKSTEP_RETURN_IF_ERROR(exchange_results(range));
  check_sum(range, direct);
  return Status::ok();
}

// Each rank gets everyone's partials over the slice that it sums.
Status MpiCollective::exchange_partials(const ElementRange& range, bool direct) {
  const auto slice = [&](uint32_t r) {
    return direct ? range : host::slice_of(range, r, world_size());
  };
  const uint64_t mine = slice(rank()).size();
  uint64_t staged = 0;
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r != rank()) staged += merge_.ranks[r].partials.size() * mine;
  }
  float* room = messages_->staging(staged);
  received_.assign(world_size(), nullptr);
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (r == rank()) continue;
    const uint64_t elements = merge_.ranks[r].partials.size() * mine;
    received_[r] = room;
    for (size_t k = 0; k < merge_.ranks[r].partials.size(); ++k) {
      messages_->receive(r, room_for(room + k * mine, mine));
    }
    room += elements;
  }
  for (uint32_t i = 1; i < world_size(); ++i) {
    const uint32_t r = (rank() + i) % world_size();  // not all to one rank first
    for (const FinalPartial& partial : merge_.ranks[rank()].partials) {
      messages_->send(r, bytes_of(buffer_->partial(partial.region), slice(r)));
    }
  }
  return messages_->wait();
}

Status MpiCollective::exchange_results(const ElementRange& range) {
  const ElementRange mine = host::slice_of(range, rank(), world_size());
  for (uint32_t i = 1; i < world_size(); ++i) {
    const uint32_t r = (rank() + i) % world_size();
    const ElementRange theirs = host::slice_of(range, r, world_size());
    messages_->receive(r, room_for(messages_->sums() + theirs.begin, theirs.size()));
    messages_->send(r, bytes_of(messages_->sums(), mine));
  }
  return messages_->wait();
}

// The place of a leaf's values of `slice`.
const float* MpiCollective::leaf(const Leaf& leaf, const ElementRange& slice) const {
  if (leaf.rank == rank()) return buffer_->partial(leaf.region) + slice.begin;
  const auto& partials = merge_.ranks[leaf.rank].partials;
  const auto found = std::find_if(partials.begin(), partials.end(),
                                  [&](const FinalPartial& p) { return p.region == leaf.region; });
  const auto index = static_cast<uint64_t>(found - partials.begin());
  return received_[leaf.rank] + index * slice.size();
}

// The partials of others' slices have not arrived: only the owner has a result.
void MpiCollective::check_sum(const ElementRange& range, bool direct) {
  if (!check_owner_) return;
  const uint32_t owner = *std::exchange(check_owner_, std::nullopt);
  checked_sum_.reset();
  const ElementRange slice = host::slice_of(range, owner, world_size());
  if (slice.size() == 0 || !takes_part(rank(), owner, world_size())) return;
  if (direct || rank() == owner) {
    checked_sum_ = hash_of(messages_->sums() + slice.begin, slice.size());
  }
}

// After an abort the caller's memory may be gone, and MPI may not know. So data goes through our
// own.
std::span<std::byte> MpiCollective::staged_bytes(size_t bytes) {
  return room_for(messages_->staging(bytes / sizeof(float) + 1), bytes / sizeof(float) + 1)
      .first(bytes);
}

Status MpiCollective::broadcast(const Tag& tag, std::span<std::byte> data, uint32_t root) {
  LOCKSTEP_CHECK(root < world_size(), "no such root");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  OpDescriptor op = next_operation(OpKind::kBroadcast, tag, {0, data.size()});
  op.root = root;
  LOCKSTEP_RETURN_IF_ERROR(messages_->meet(op));
  const std::span<std::byte> staged = staged_bytes(data.size());
  if (rank() == root) {
    std::copy(data.begin(), data.end(), staged.begin());
    for (uint32_t r = 0; r < world_size(); ++r) {
      if (r != root) messages_->send(r, staged);
    }
    return messages_->wait();
  }
  messages_->receive(root, staged);
  LOCKSTEP_RETURN_IF_ERROR(messages_->wait());
  std::copy(staged.begin(), staged.end(), data.begin());
  return Status::ok();
}

Status MpiCollective::all_gather(const Tag& tag, std::span<const std::byte> mine,
                                 std::span<std::byte> all) {
  LOCKSTEP_CHECK(all.size() == mine.size() * world_size(), "room for everyone's part");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  LOCKSTEP_RETURN_IF_ERROR(
      messages_->meet(next_operation(OpKind::kAllGather, tag, {0, mine.size()})));
  const std::span<std::byte> staged = staged_bytes(all.size());
  const auto part = [&](uint32_t r) { return staged.subspan(r * mine.size(), mine.size()); };
  std::copy(mine.begin(), mine.end(), part(rank()).begin());
  for (uint32_t i = 1; i < world_size(); ++i) {
    const uint32_t r = (rank() + i) % world_size();
    messages_->receive(r, part(r));
    messages_->send(r, part(rank()));
  }
  LOCKSTEP_RETURN_IF_ERROR(messages_->wait());
  std::copy(staged.begin(), staged.end(), all.begin());
  return Status::ok();
}

Status MpiCollective::barrier(const Tag& tag) {
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  LOCKSTEP_RETURN_IF_ERROR(messages_->meet(next_operation(OpKind::kBarrier, tag, {})));
  return messages_->wait();
}

Status MpiCollective::check_tag(const Tag& tag) const {
  if (messages_->is_aborted()) return messages_->check();  // tells the peers
  return check_generation(tag, messages_->generation());
}

OpDescriptor MpiCollective::next_operation(OpKind kind, const Tag& tag, const ElementRange& range) {
  return host::describe(host::make_mark(messages_->generation(), ++operations_), kind, tag, range);
}

}  // namespace lockstep::mpi
