// Plans which rank sends what to whom, and when each rank adds it, so that GPUs sum along the
// reduction tree.
//
//   flat    every rank receives its slice of every partial, adds them in tree order, and sends the
//           sum to all others: two exchanges
//   levels  the same within a node, then between nodes, then back: four exchanges. The slower links
//           carry one value for each complete subtree of a node's slots instead of every partial:
//           one value a node as a rule, a few after a death. Nodes may have different numbers of
//           ranks.
//
// LEVELS WITH UNEVEN NODES. Each node cuts the range into a slice for each of its ranks. The cuts
// of all nodes together cut it into segments, and within a segment exactly one rank of each node
// has the node's values. These ranks, one a node, share the segment's additions evenly. With
// equally many ranks on each node the segments are the slices.
//
//     node 0, 3 ranks  |    0    |    1    |    2    |
//     node 1, 2 ranks  |      3       |      4       |
//     segments         |   0,3   |1,3 |1,4 |   2,4   |
//
// A plan is a list of phases. A phase is one NCCL group (all transfers at once) and then sums of
// the received values. Transfers between two ranks match by their order.
//
// INVARIANTS
//  N1 Every plan gives the bits of evaluate_sum() over all partials.
//  N2 All ranks choose the same kind of plan: it depends on the nodes only (sums_in_levels).
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/collectives/collective.h"
#include "comm/collectives/reduction_tree.h"

namespace lockstep::nccl {

enum class PlanBuffer : uint8_t { kPartial, kStage, kResult };

// Elements from `begin` on of one of this rank's buffers. A partial and the result have the layout
// of the flat buffer. The plan chooses the layout of the stage.
struct BufferPlace {
  PlanBuffer buffer = PlanBuffer::kResult;
  uint32_t region = 0;  // used with kPartial
  uint64_t begin = 0;
  bool operator==(const BufferPlace&) const = default;
};

struct Transfer {
  uint32_t peer = 0;
  BufferPlace place;
  uint64_t elements = 0;
};

// out = sum of leaves by `ops` (SumProgram), or zeros without ops. `out` may be leaves[0].
struct PlannedSum {
  std::vector<int32_t> ops;
  std::vector<BufferPlace> leaves;
  BufferPlace out;
  uint64_t elements = 0;
};

struct ExchangePhase {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  std::vector<PlannedSum> sums;
};

struct ExactPlan {
  std::vector<ExchangePhase> phases;
  uint64_t stage_elements = 0;
  bool has_levels = false;
};

// A sum that the ranks of one node can compute alone: the sum of a subtree whose partials are all
// theirs.
struct NodeTree {
  uint32_t node = 0;
  std::vector<int32_t> ops;  // over SumProgram::leaves of the whole
};

// A sum cut into the largest sums that nodes can compute alone, and one over these.
struct NodePrograms {
  std::vector<NodeTree> trees;  // in the order in which the sum needs them
  std::vector<int32_t> outer;   // over `trees`
};

NodePrograms split_by_node(const SumProgram& program, std::span<const uint32_t> node_of_rank);

// The part of `rank` in summing `range`. Elements after `statistics` are the control section.
ExactPlan make_exact_plan(const StepMerge& merge, std::span<const uint32_t> node_of_rank,
                          uint32_t rank, const ElementRange& range, uint64_t statistics);

}  // namespace lockstep::nccl
