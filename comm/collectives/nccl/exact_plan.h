// Who sends what to whom, and when each rank adds it, so that GPUs sum along the reduction tree.
//
//   flat    every rank receives its slice of every partial, adds them in tree order, and sends the
//           sum to all others: two exchanges
//   levels  the same within a node, then among the ranks of equal place on all nodes, then back:
//           four exchanges. The slower links carry one value a node instead of every partial. It
//           needs nodes of equally many ranks whose slots are complete subtrees.
//
// A plan is a list of phases. A phase is one NCCL group (all transfers at once) and then sums of
// the received values. Transfers between two ranks match by their order.
//
// INVARIANTS
//  N1 Every plan gives the bits of evaluate_sum() over all partials.
//  N2 All ranks choose the same kind of plan: it depends on the step's merge and the nodes only.
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

// A sum cut into one sum per node and one over the nodes. `outer` has nodes as leaves.
struct NodePrograms {
  std::vector<std::vector<int32_t>> inner;  // by node, over SumProgram::leaves of the whole
  std::vector<int32_t> outer;
};

// Nothing if the partials of some node are no subtree of the sum.
std::optional<NodePrograms> split_by_node(const SumProgram& program,
                                          std::span<const uint32_t> node_of_rank);

// True if `node_of_rank` is 0, 0, ..., 1, 1, ...: more than one node, and more than one rank a
// node, the same number on each.
bool are_even_nodes(std::span<const uint32_t> node_of_rank);

// The part of `rank` in summing `range`. Elements behind `statistics` are the control section.
ExactPlan make_exact_plan(const StepMerge& merge, std::span<const uint32_t> node_of_rank,
                          uint32_t rank, const ElementRange& range, uint64_t statistics);

}  // namespace lockstep::nccl
