// The part of a sum that each node can compute alone.
#include <algorithm>
#include <utility>

#include "comm/collectives/nccl/exact_plan.h"

namespace lockstep::nccl {
namespace {

constexpr int64_t kSeveralNodes = -1;

// A value on the stack of the sum: the node of its leaves, and its program. A value over several
// nodes has nodes as leaves.
struct Value {
  int64_t node = kSeveralNodes;
  size_t leaves = 0;
  std::vector<int32_t> ops;
};

void append(std::vector<int32_t>* ops, const std::vector<int32_t>& more) {
  ops->insert(ops->end(), more.begin(), more.end());
}

class Splitter {
 public:
  Splitter(const SumProgram& program, std::span<const uint32_t> node_of_rank)
      : program_(program), node_of_rank_(node_of_rank) {
    split_.inner.resize(node_of_rank.empty() ? 0 : node_of_rank.back() + 1);
    leaves_of_node_.resize(split_.inner.size());
    for (const Leaf& leaf : program.leaves) ++leaves_of_node_[node_of_rank[leaf.rank]];
  }

  std::optional<NodePrograms> run() {
    for (const int32_t op : program_.ops) {
      if (op != SumProgram::kAdd) {
        stack_.push_back({node_of_rank_[program_.leaves[static_cast<size_t>(op)].rank], 1, {op}});
      } else if (!add()) {
        return std::nullopt;
      }
    }
    if (stack_.empty()) return std::move(split_);
    if (!close(&stack_.back())) return std::nullopt;
    split_.outer = std::move(stack_.back().ops);
    return std::move(split_);
  }

 private:
  bool add() {
    Value right = std::move(stack_.back());
    stack_.pop_back();
    Value& left = stack_.back();
    if (left.node == kSeveralNodes || left.node != right.node) {
      if (!close(&left) || !close(&right)) return false;
    }
    left.leaves += right.leaves;
    append(&left.ops, right.ops);
    left.ops.push_back(SumProgram::kAdd);
    return true;
  }

  // Makes a node's value a leaf of the outer sum. False if it is only a part of the node's value.
  bool close(Value* value) {
    if (value->node == kSeveralNodes) return true;
    const auto node = static_cast<size_t>(value->node);
    if (value->leaves != leaves_of_node_[node]) return false;
    split_.inner[node] = std::exchange(value->ops, {static_cast<int32_t>(node)});
    value->node = kSeveralNodes;
    return true;
  }

  const SumProgram& program_;
  std::span<const uint32_t> node_of_rank_;
  std::vector<size_t> leaves_of_node_;
  std::vector<Value> stack_;
  NodePrograms split_;
};

}  // namespace

std::optional<NodePrograms> split_by_node(const SumProgram& program,
                                          std::span<const uint32_t> node_of_rank) {
  return Splitter(program, node_of_rank).run();
}

bool are_even_nodes(std::span<const uint32_t> node_of_rank) {
  const size_t ranks = node_of_rank.size();
  if (ranks == 0 || node_of_rank.back() == 0) return false;
  const size_t nodes = size_t{node_of_rank.back()} + 1;
  const size_t local = ranks / nodes;
  if (local < 2 || local * nodes != ranks) return false;
  for (size_t r = 0; r < ranks; ++r) {
    if (node_of_rank[r] != r / local) return false;
  }
  return true;
}

}  // namespace lockstep::nccl
