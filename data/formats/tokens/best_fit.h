// Fits pieces of several lengths into packs of one size, by best-fit decreasing. From the longest
// piece to the shortest, a piece goes where it leaves the least room, or into a new pack if no pack
// has room. This takes at most 11/9 of the fewest possible packs, plus one. Texts have many short
// pieces, so for texts it hardly takes more than the fewest.
//
// Lengths are small whole numbers. Counting sorts the lengths, and a set of the remaining rooms
// finds the pack, so the run time is linear in the pieces.
//
// Source: Johnson, "Near-optimal bin packing algorithms", 1973. For language models: Ding et al.,
// "Fewer Truncations Improve Language Modeling", ICML 2024, who find the room in a segment tree.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

// The version of best_fit()'s results for given lengths; part of fingerprints.
inline constexpr uint32_t kBestFitVersion = 1;

struct Packs {
  std::vector<uint32_t> pieces;  // of one pack after another; rising within a pack
  std::vector<uint32_t> begins;  // where each pack begins in `pieces`, and at the end their number
  uint64_t size() const { return begins.size() - 1; }
  std::span<const uint32_t> of(uint64_t pack) const {
    return std::span(pieces).subspan(begins[pack], begins[pack + 1] - begins[pack]);
  }
};

// Ties: among pieces with the same length, the first goes first. Among packs with the same room,
// the pack that has had this room longest gets the piece. Packs are numbered in the order in which
// they begin. Takes 12 bytes a piece while it runs; returns 4 bytes a piece and 4 a pack. REQUIRES:
// fewer than 2^32 lengths, each 1 to `room`.
Packs best_fit(std::span<const uint32_t> lengths, uint32_t room);

// The numbers of the pieces from short to long; pieces of the same length by their numbers.
// REQUIRES: as above.
std::vector<uint32_t> by_length(std::span<const uint32_t> lengths, uint32_t room);

}  // namespace lockstep::data
