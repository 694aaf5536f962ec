#include "comm/collectives/host/generation_collective.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/check_generation.h"
#include "comm/collectives/sum_slice.h"

namespace lockstep::host {
namespace {

constexpr int kDrainMs = 1'000;

bool shares_memory_with_the_only_peer(Peers& peers) {
  return peers.world_size() == 2 && peers.link(1 - peers.rank()).shares_memory();
}

}  // namespace

GenerationCollective::GenerationCollective(std::shared_ptr<Peers> peers,
                                           std::shared_ptr<link::Segment> gradient,
                                           const GradientGeometry& geometry,
                                           std::unique_ptr<link::TcpIo> io)
    : peers_(std::move(peers)),
      gradient_(std::move(gradient)),
      geometry_(geometry),
      io_(std::move(io)),
      two_on_one_host_(shares_memory_with_the_only_peer(*peers_)) {
  if (gradient_ != nullptr) reduced_ = own_result();
}

GenerationCollective::~GenerationCollective() {
  if (io_->has_connections() && !peers_->is_aborted()) io_->drain(kDrainMs);
  peers_->abort();
}

Status GenerationCollective::begin_step(const Tag& tag, const StepMerge& merge) {
  LOCKSTEP_CHECK(gradient_ != nullptr, "begin_step needs a gradient buffer");
  LOCKSTEP_CHECK(merge.ranks.size() == world_size(), "one schedule per rank");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  // C3: a published range may be rewritten once everyone has read it.
  if (last_reduce_ != 0) {
    LOCKSTEP_RETURN_IF_ERROR(finish(peers_->wait_for_all(&FlagBlock::read, last_reduce_)));
  }
  step_ = tag.step;
  merge_ = merge;
  merge_hash_ = hash_of(merge);
  const std::vector<Leaf>& leaves = merge.gradients.leaves;
  alone_ = world_size() == 1 && leaves.size() == 1 && merge.control.leaves.size() == 1;
  reduced_ = room_ == nullptr ? own_result() : room_;
  if (alone_) reduced_ = own_partial(leaves[0].region);
  return Status::ok();
}

Status GenerationCollective::all_reduce(const Tag& tag, const ElementRange& range) {
  LOCKSTEP_CHECK(gradient_ != nullptr, "all_reduce needs a gradient buffer");
  LOCKSTEP_CHECK(range.begin <= range.end && range.end <= geometry_.layout.elements &&
                     range.begin % kCutElements == 0 && range.end % kCutElements == 0,
                 "an operation's range is cut at multiples of kCutElements");
  LOCKSTEP_CHECK(tag.step == step_ && !merge_.ranks.empty(), "all_reduce of a step not begun");
  LOCKSTEP_RETURN_IF_ERROR(check_tag(tag));
  return alone_ ? Status::ok() : finish(reduce(tag, range));
}

Status GenerationCollective::reduce(const Tag& tag, const ElementRange& range) {
  OpDescriptor op = next_operation(OpKind::kAllReduce, tag, range);
  op.merge_hash = agreed_hash(merge_hash_, tag);
  const Algorithm algorithm =
      choose_algorithm(world_size(), range.size() * sizeof(float), two_on_one_host_);
  const bool direct = algorithm == Algorithm::kDirect;
  const ElementRange slice = direct ? range : slice_of(range, rank(), world_size());
  send_partials(op, range, algorithm);
  peers_->announce(op);
  LOCKSTEP_RETURN_IF_ERROR(peers_->meet(op));

  sum_own(slice, (direct ? reduced_ : own_result()) + slice.begin);
  if (!direct) LOCKSTEP_RETURN_IF_ERROR(gather_results(op, range));
  if (check_owner_) {
    checked_sum_ = check_sum(range, direct, *std::exchange(check_owner_, std::nullopt));
  }

  last_reduce_ = op.mark;
  peers_->raise(&FlagBlock::read, op.mark);
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (!peers_->is_self(r)) peers_->link(r).send_read(op.mark);
  }
  return peers_->is_aborted() ? peers_->aborted_status() : Status::ok();
}

// Sends to peers without shared memory: each gets this rank's partials over the slice that it sums.
void GenerationCollective::send_partials(const OpDescriptor& op, const ElementRange& range,
                                         Algorithm algorithm) {
  const bool direct = algorithm == Algorithm::kDirect;
  const ElementRange mine = direct ? range : slice_of(range, rank(), world_size());
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (peers_->is_self(r) || peers_->link(r).shares_memory()) continue;
    const ElementRange theirs = direct ? range : slice_of(range, r, world_size());
    std::vector<std::span<const std::byte>> parts;
    for (const FinalPartial& partial : merge_.ranks[rank()].partials) {
      parts.push_back(own_bytes(own_partial(partial.region), theirs));
    }
    Expected expected;
    expected.payload_bytes = merge_.ranks[r].partials.size() * mine.size() * sizeof(float);
    if (!direct) {
      expected.result = reduced_ + theirs.begin;
      expected.result_bytes = theirs.size() * sizeof(float);
    }
    peers_->link(r).exchange(op, std::move(parts), expected);
  }
}

void GenerationCollective::sum_own(const ElementRange& slice, float* out) {
  const auto leaf_at = [&](const Leaf& each) { return leaf(each, slice); };
  sum_slice(merge_, geometry_.layout.statistics, slice, leaf_at, out);
}

// The place of a leaf's values of `slice`.
const float* GenerationCollective::leaf(const Leaf& leaf, const ElementRange& slice) const {
  if (peers_->is_self(leaf.rank)) return own_partial(leaf.region) + slice.begin;
  const auto& partials = merge_.ranks[leaf.rank].partials;
  const auto found = std::find_if(partials.begin(), partials.end(),
                                  [&](const FinalPartial& p) { return p.region == leaf.region; });
  return peers_->link(leaf.rank).partial(static_cast<uint32_t>(found - partials.begin()),
                                         leaf.region, slice);
}

Status GenerationCollective::gather_results(const OpDescriptor& op, const ElementRange& range) {
  const ElementRange mine = slice_of(range, rank(), world_size());
  peers_->raise(&FlagBlock::result, op.mark);
  for (uint32_t r = 0; r < world_size(); ++r) {
    if (!peers_->is_self(r)) peers_->link(r).send_result(op.mark, own_bytes(own_result(), mine));
  }
  if (reduced_ != own_result())
    std::copy_n(own_result() + mine.begin, mine.size(), reduced_ + mine.begin);
  // Begins with the next rank, so that not everyone reads the same memory at once.
  for (uint32_t i = 1; i < world_size(); ++i) {
    const uint32_t r = (rank() + i) % world_size();
    LOCKSTEP_RETURN_IF_ERROR(peers_->wait_for(r, &FlagBlock::result, op.mark));
    const ElementRange theirs = slice_of(range, r, world_size());
    const float* result = peers_->link(r).result(theirs.begin);
    if (result == nullptr || theirs.size() == 0) continue;
    std::copy_n(result, theirs.size(), reduced_ + theirs.begin);
  }
  return Status::ok();
}

std::span<const std::byte> GenerationCollective::own_bytes(const float* data,
                                                           const ElementRange& range) const {
  return std::as_bytes(std::span(data + range.begin, range.size()));
}

Status GenerationCollective::check_tag(const Tag& tag) const {
  if (peers_->is_aborted()) return peers_->aborted_status();
  return check_generation(tag, peers_->generation());
}

OpDescriptor GenerationCollective::next_operation(OpKind kind, const Tag& tag,
                                                  const ElementRange& range) {
  return describe(make_mark(peers_->generation(), ++operations_), kind, tag, range);
}

// A failed operation ends the generation for all: no rank may wait for data that will not come.
Status GenerationCollective::finish(Status status) {
  if (!status.is_ok()) peers_->abort();
  return status;
}

float* GenerationCollective::own_partial(uint32_t region) const {
  LOCKSTEP_CHECK(region < geometry_.regions, "the schedule needs more regions than were reserved");
  auto* base = static_cast<std::byte*>(gradient_->data());
  return reinterpret_cast<float*>(base + geometry_.partial_offset(region));
}

float* GenerationCollective::own_result() const {
  auto* base = static_cast<std::byte*>(gradient_->data());
  return reinterpret_cast<float*>(base + geometry_.result_offset());
}

}  // namespace lockstep::host
