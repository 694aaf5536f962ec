#include "comm/collectives/nccl/exact_plan.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "comm/collectives/host/slices.h"
#include "comm/collectives/node_levels.h"

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
      : rank_(rank), node_of_rank_(node_of_rank), plan_(plan) {
    for (uint32_t r = 0; r < node_of_rank.size(); ++r) {
      if (node_of_rank[r] == nodes_.size()) nodes_.emplace_back();
      if (r == rank) nodes_.back().mine = nodes_.back().size();
      nodes_.back().ranks.push_back(r);
    }
  }

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

  void add_levels(const SumProgram& program, const ElementRange& part) {
    const NodePrograms split = split_by_node(program, node_of_rank_);
    const uint32_t here = node_of_rank_[rank_];
    const Group& node = nodes_[here];
    std::vector<Term> terms;  // of the sum between nodes; their owners are nodes
    for (const NodeTree& tree : split.trees) {
      terms.push_back({tree.node, {}, 0});
      if (tree.node == here) add_node_value(node, program, tree.ops, part, &terms.back());
    }
    for (const ElementRange& segment : segments_of(part)) {
      if (!has(node.slice(part, node.mine), segment)) continue;
      const Group across = ranks_that_have(segment, part);
      const ElementRange mine = across.slice(segment, across.mine);
      reduce(1, across, segment, terms, split.outer, {PlanBuffer::kResult, 0, mine.begin});
      gather(2, across, segment);
    }
    gather(3, node, part);
  }

 private:
  // The sum of one tree of this node, over this rank's slice. A partial of this rank's own is
  // there already; its other slices go to the node's other ranks.
  void add_node_value(const Group& node, const SumProgram& program, const std::vector<int32_t>& ops,
                      const ElementRange& part, Term* value) {
    std::vector<Term> terms;
    std::vector<int32_t> own_ops;
    for (const int32_t op : ops) {
      if (op == SumProgram::kAdd) {
        own_ops.push_back(op);
        continue;
      }
      const Leaf& leaf = program.leaves[static_cast<size_t>(op)];
      own_ops.push_back(static_cast<int32_t>(terms.size()));
      terms.push_back({leaf.rank - node.ranks.front(),
                       {PlanBuffer::kPartial, leaf.region, part.begin},
                       part.begin});
    }
    const ElementRange slice = node.slice(part, node.mine);
    if (terms.size() == 1 && terms[0].owner == node.mine) {
      send_slices(&at(0), node, part, terms[0]);
      value->whole = shifted(terms[0], slice.begin);
    } else if (terms.size() == 1) {
      value->whole = take_stage(slice.size());
      if (slice.size() > 0)
        at(0).receives.push_back({node.ranks[terms[0].owner], value->whole, slice.size()});
    } else {
      value->whole = take_stage(slice.size());
      reduce(0, node, part, terms, own_ops, value->whole);
    }
    value->base = slice.begin;
  }

  static bool has(const ElementRange& slice, const ElementRange& segment) {
    return slice.begin <= segment.begin && segment.end <= slice.end;
  }

  // `part`, cut wherever some node cuts it.
  std::vector<ElementRange> segments_of(const ElementRange& part) const {
    std::vector<uint64_t> cuts;
    for (const Group& node : nodes_) {
      for (uint32_t l = 0; l < node.size(); ++l) cuts.push_back(node.slice(part, l).begin);
    }
    cuts.push_back(part.end);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<ElementRange> segments;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) segments.push_back({cuts[i], cuts[i + 1]});
    return segments;
  }

  // The rank of every node that has the node's values in `segment`.
  Group ranks_that_have(const ElementRange& segment, const ElementRange& part) const {
    Group across;
    across.mine = node_of_rank_[rank_];
    for (const Group& node : nodes_) {
      uint32_t l = 0;
      while (!has(node.slice(part, l), segment)) ++l;
      across.ranks.push_back(node.ranks[l]);
    }
    return across;
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
  std::vector<Group> nodes_;  // `mine` is right in this rank's own only
  ExactPlan* const plan_;
};

}  // namespace

ExactPlan make_exact_plan(const StepMerge& merge, std::span<const uint32_t> node_of_rank,
                          uint32_t rank, const ElementRange& range, uint64_t statistics) {
  LOCKSTEP_CHECK(merge.ranks.size() == node_of_rank.size(), "one node per rank");
  const uint64_t cut = std::clamp(statistics, range.begin, range.end);
  ExactPlan plan;
  Planner planner(rank, node_of_rank, &plan);
  plan.has_levels = sums_in_levels(node_of_rank);
  const std::pair<const SumProgram*, ElementRange> parts[] = {
      {&merge.gradients, {range.begin, cut}}, {&merge.control, {cut, range.end}}};
  for (const auto& [program, part] : parts) {
    if (part.size() == 0) continue;
    if (plan.has_levels) {
      planner.add_levels(*program, part);
    } else {
      planner.add_flat(*program, part);
    }
  }
  return plan;
}

}  // namespace lockstep::nccl
