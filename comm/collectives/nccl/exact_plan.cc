#include "comm/collectives/nccl/exact_plan.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/host/slices.h"

namespace lockstep::nccl {
namespace {

using host::slice_of;

// The ranks that cut a range among themselves. `mine` is this rank's place among them.
struct Group {
  std::vector<uint32_t> ranks;
  uint32_t mine = 0;

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  ElementRange slice(const ElementRange& range, uint32_t place) const {
    return slice_of(range, place, size());
  }
};

// One summand: its owner (a place in the group), and where it begins there.
struct Term {
  uint32_t owner = 0;
  BufferPlace whole;  // in the owner's buffers; only the owner reads it
  uint64_t base = 0;  // the element of the flat buffer that lies at whole.begin
};

class Planner {
 public:
  Planner(uint32_t rank, std::span<const uint32_t> node_of_rank, ExactPlan* plan)
      : rank_(rank), node_of_rank_(node_of_rank), plan_(plan) {}

  void add_flat(const SumProgram& program, const ElementRange& part) {
    Group all;
    for (uint32_t r = 0; r < node_of_rank_.size(); ++r) all.ranks.push_back(r);
    all.mine = rank_;
    std::vector<Term> terms;
    for (const Leaf& leaf : program.leaves)
      terms.push_back({leaf.rank, {PlanBuffer::kPartial, leaf.region, part.begin}, part.begin});
    const ElementRange mine = all.slice(part, all.mine);
    reduce(0, all, part, terms, program.ops, {PlanBuffer::kResult, 0, mine.begin});
    gather(1, all, part);
  }

  void add_levels(const SumProgram& program, const NodePrograms& split, const ElementRange& part) {
    const auto nodes = static_cast<uint32_t>(split.inner.size());
    const auto local = static_cast<uint32_t>(node_of_rank_.size()) / nodes;
    Group node;   // the ranks of this rank's node
    Group place;  // the ranks of this rank's place on every node
    node.mine = rank_ % local;
    place.mine = rank_ / local;
    for (uint32_t l = 0; l < local; ++l) node.ranks.push_back(place.mine * local + l);
    for (uint32_t n = 0; n < nodes; ++n) place.ranks.push_back(n * local + node.mine);

    const ElementRange slice = node.slice(part, node.mine);
    const BufferPlace value = take_stage(slice.size());
    add_node_sum(node, program, split.inner[place.mine], part, value);

    std::vector<Term> terms;
    std::vector<int32_t> ops;
    for (const int32_t op : split.outer) {
      if (op == SumProgram::kAdd) {
        ops.push_back(op);
        continue;
      }
      ops.push_back(static_cast<int32_t>(terms.size()));
      terms.push_back({static_cast<uint32_t>(op), value, slice.begin});
    }
    const ElementRange mine = place.slice(slice, place.mine);
    reduce(1, place, slice, terms, ops, {PlanBuffer::kResult, 0, mine.begin});
    gather(2, place, slice);
    gather(3, node, part);
  }

 private:
  // The sum of this node's partials over this rank's slice goes to `value`.
  void add_node_sum(const Group& node, const SumProgram& program, const std::vector<int32_t>& inner,
                    const ElementRange& part, const BufferPlace& value) {
    std::vector<Term> terms;
    std::vector<int32_t> ops;
    for (const int32_t op : inner) {
      if (op == SumProgram::kAdd) {
        ops.push_back(op);
        continue;
      }
      const Leaf& leaf = program.leaves[static_cast<size_t>(op)];
      ops.push_back(static_cast<int32_t>(terms.size()));
      terms.push_back({leaf.rank - node.ranks.front(),
                       {PlanBuffer::kPartial, leaf.region, part.begin},
                       part.begin});
    }
    if (!terms.empty()) reduce(0, node, part, terms, ops, value);
  }

  // Each rank of the group gets its slice of every term and adds them into `out`.
  void reduce(size_t phase, const Group& group, const ElementRange& range,
              const std::vector<Term>& terms, const std::vector<int32_t>& ops,
              const BufferPlace& out) {
    ExchangePhase& exchange = at(phase);
    const ElementRange mine = group.slice(range, group.mine);
    PlannedSum sum{ops, {}, out, mine.size()};
    for (const Term& term : terms) {
      if (term.owner == group.mine) {
        sum.leaves.push_back(shifted(term, mine.begin));
        send_slices(&exchange, group, range, term);
        continue;
      }
      const BufferPlace stage = take_stage(mine.size());
      sum.leaves.push_back(stage);
      if (mine.size() > 0)
        exchange.receives.push_back({group.ranks[term.owner], stage, mine.size()});
    }
    if (mine.size() > 0) exchange.sums.push_back(std::move(sum));
  }

  static void send_slices(ExchangePhase* exchange, const Group& group, const ElementRange& range,
                          const Term& term) {
    for (uint32_t to = 0; to < group.size(); ++to) {
      const ElementRange theirs = group.slice(range, to);
      if (to == group.mine || theirs.size() == 0) continue;
      exchange->sends.push_back({group.ranks[to], shifted(term, theirs.begin), theirs.size()});
    }
  }

  // Every rank of the group gets the others' slices of the result.
  void gather(size_t phase, const Group& group, const ElementRange& range) {
    ExchangePhase& exchange = at(phase);
    const ElementRange mine = group.slice(range, group.mine);
    for (uint32_t other = 0; other < group.size(); ++other) {
      if (other == group.mine) continue;
      const ElementRange theirs = group.slice(range, other);
      const uint32_t peer = group.ranks[other];
      if (mine.size() > 0)
        exchange.sends.push_back({peer, {PlanBuffer::kResult, 0, mine.begin}, mine.size()});
      if (theirs.size() > 0)
        exchange.receives.push_back({peer, {PlanBuffer::kResult, 0, theirs.begin}, theirs.size()});
    }
  }

  static BufferPlace shifted(const Term& term, uint64_t element) {
    BufferPlace place = term.whole;
    place.begin += element - term.base;
    return place;
  }

  // Slices are cut at cache lines, so every place in the stage has the alignment of the buffers.
  BufferPlace take_stage(uint64_t elements) {
    const uint64_t begin = plan_->stage_elements;
    plan_->stage_elements += elements;
    return {PlanBuffer::kStage, 0, begin};
  }

  ExchangePhase& at(size_t phase) {
    if (plan_->phases.size() <= phase) plan_->phases.resize(phase + 1);
    return plan_->phases[phase];
  }

  const uint32_t rank_;
  const std::span<const uint32_t> node_of_rank_;
  ExactPlan* const plan_;
};

}  // namespace

ExactPlan make_exact_plan(const StepMerge& merge, std::span<const uint32_t> node_of_rank,
                          uint32_t rank, const ElementRange& range, uint64_t statistics) {
  LOCKSTEP_CHECK(merge.ranks.size() == node_of_rank.size(), "one node per rank");
  const uint64_t cut = std::clamp(statistics, range.begin, range.end);
  ExactPlan plan;
  Planner planner(rank, node_of_rank, &plan);
  const std::pair<const SumProgram*, ElementRange> parts[] = {
      {&merge.gradients, {range.begin, cut}}, {&merge.control, {cut, range.end}}};
  // Both or none, because a range is one bucket and its phases are shared.
  std::vector<std::optional<NodePrograms>> splits;
  plan.has_levels = are_even_nodes(node_of_rank);
  for (const auto& [program, part] : parts) {
    splits.push_back(plan.has_levels ? split_by_node(*program, node_of_rank) : std::nullopt);
    plan.has_levels = plan.has_levels && splits.back().has_value();
  }
  for (size_t i = 0; i < splits.size(); ++i) {
    const auto& [program, part] = parts[i];
    if (part.size() == 0) continue;
    if (plan.has_levels) {
      planner.add_levels(*program, *splits[i], part);
    } else {
      planner.add_flat(*program, part);
    }
  }
  return plan;
}

}  // namespace lockstep::nccl
