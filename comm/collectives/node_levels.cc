#include "comm/collectives/node_levels.h"

#include <algorithm>

#include "comm/base/check.h"

namespace lockstep {

std::vector<uint32_t> number_nodes(std::span<const std::string_view> hosts) {
  std::vector<uint32_t> nodes;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const bool is_neighbour = rank > 0 && hosts[rank] == hosts[rank - 1];
    nodes.push_back(rank == 0 ? 0 : nodes.back() + (is_neighbour ? 0 : 1));
  }
  return nodes;
}

std::vector<uint32_t> ranks_of_nodes(std::span<const uint32_t> node_of_rank) {
  std::vector<uint32_t> ranks;
  for (const uint32_t node : node_of_rank) {
    LOCKSTEP_CHECK(node == ranks.size() || node + 1 == ranks.size(),
                   "ranks of a node are neighbours");
    if (node == ranks.size()) ranks.push_back(0);
    ++ranks.back();
  }
  return ranks;
}

bool sums_in_levels(std::span<const uint32_t> node_of_rank) {
  const std::vector<uint32_t> ranks = ranks_of_nodes(node_of_rank);
  return ranks.size() > 1 &&
         std::any_of(ranks.begin(), ranks.end(), [](uint32_t r) { return r > 1; });
}

std::string describe_levels(std::span<const uint32_t> node_of_rank) {
  const std::vector<uint32_t> ranks = ranks_of_nodes(node_of_rank);
  std::string text = sums_in_levels(node_of_rank) ? "in two levels over " : "flat over ";
  text += std::to_string(ranks.size()) + (ranks.size() == 1 ? " node" : " nodes") + " of ";
  for (size_t n = 0; n < ranks.size(); ++n) text += (n == 0 ? "" : ", ") + std::to_string(ranks[n]);
  return text + (ranks == std::vector<uint32_t>{1} ? " GPU" : " GPUs");
}

}  // namespace lockstep
