// Pieces of several lengths into packs of one size, by best-fit decreasing: from the longest piece
// to the shortest, each goes where the least room is left behind it, and into a new pack where none
// has room. That takes at most 11/9 of the fewest packs possible and one more, and of texts, with
// their many short ones, hardly more than these.
//
// Lengths are small whole numbers: counting sorts them, and a set of the rooms that are left finds
// the place, so that all of it is linear in the pieces.
//
// Source: Johnson, "Near-optimal bin packing algorithms", 1973; of language models Ding et al.,
// "Fewer Truncations Improve Language Modeling", ICML 2024, who find the room in a segment tree.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

// Of what best_fit() does with the same lengths; part of fingerprints.
inline constexpr uint32_t kBestFitVersion = 1;

struct Packs {
  std::vector<uint32_t> pieces;  // of one pack after another; rising within each
  std::vector<uint32_t> begins;  // of the packs in these; at the end their number
  uint64_t size() const { return begins.size() - 1; }
  std::span<const uint32_t> of(uint64_t pack) const {
    return std::span(pieces).subspan(begins[pack], begins[pack + 1] - begins[pack]);
  }
};

// Of pieces of the same length the first comes first, and of packs with the same room the one that
// has had it longest is taken. Packs are numbered as they are begun. Takes 12 bytes a piece on its
// way, and returns 4 a piece and 4 a pack.
// REQUIRES: fewer than 2^32 lengths, each 1 to `room`.
Packs best_fit(std::span<const uint32_t> lengths, uint32_t room);

// The numbers of the pieces from short to long, and of the same length by their numbers.
// REQUIRES: the same.
std::vector<uint32_t> by_length(std::span<const uint32_t> lengths, uint32_t room);

}  // namespace lockstep::data
