// Over which nodes the GPUs of a generation are spread, and whether their sums take two levels:
// within a node first, then between nodes.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// By rank, the number of its node: 0, 0, ..., 1, 1, ... `hosts`: by rank, what names its machine.
// Ranks of a machine that are no neighbours count as ranks of several nodes.
std::vector<uint32_t> number_nodes(std::span<const std::string_view> hosts);

// By node, the number of its ranks. REQUIRES: `node_of_rank` is 0, 0, ..., 1, 1, ...: ranks of a
// node are neighbours.
std::vector<uint32_t> ranks_of_nodes(std::span<const uint32_t> node_of_rank);

// True with several nodes, some of which have several ranks. Else there is nothing to add within a
// node, or nothing to send between nodes.
bool sums_in_levels(std::span<const uint32_t> node_of_rank);

// For the log: "in two levels over 2 nodes of 8, 7 GPUs".
std::string describe_levels(std::span<const uint32_t> node_of_rank);

}  // namespace lockstep
