// The parts of a sum that each node can compute alone.
#include <utility>

#include "comm/collectives/nccl/exact_plan.h"

namespace lockstep::nccl {
namespace {

constexpr int64_t kSeveralNodes = -1;

// A value on the stack of the sum: the node of its leaves, and its program. A value over several
// nodes has trees as leaves.
struct Value {
  int64_t node = kSeveralNodes;
  std::vector<int32_t> ops;
};

// Ends the growth of a node's value: it becomes a leaf of the outer sum.
void close(Value* value, NodePrograms* split) {
  if (value->node == kSeveralNodes) return;
  const auto tree = static_cast<int32_t>(split->trees.size());
  split->trees.push_back({static_cast<uint32_t>(value->node), std::exchange(value->ops, {tree})});
  value->node = kSeveralNodes;
}

}  // namespace

NodePrograms split_by_node(const SumProgram& program, std::span<const uint32_t> node_of_rank) {
  NodePrograms split;
  std::vector<Value> stack;
  for (const int32_t op : program.ops) {
    if (op != SumProgram::kAdd) {
      stack.push_back({node_of_rank[program.leaves[static_cast<size_t>(op)].rank], {op}});
      continue;
    }
    Value right = std::move(stack.back());
    stack.pop_back();
    Value& left = stack.back();
    if (left.node != right.node) {
      close(&left, &split);
      close(&right, &split);
    }
    left.ops.insert(left.ops.end(), right.ops.begin(), right.ops.end());
    left.ops.push_back(SumProgram::kAdd);
  }
  if (stack.empty()) return split;  // no sample at all
  close(&stack.back(), &split);
  split.outer = std::move(stack.back().ops);
  return split;
}

}  // namespace lockstep::nccl
