// A set of whole numbers from 0 to a limit, as bits with levels of summaries above them, 64 bits to
// one. Finding the least number from a given one on takes one look a level: 4 looks for a million.
//
// Thread-safety: one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::data {

class RoomSet {
 public:
  // An empty set for numbers from 0 to `limit`.
  explicit RoomSet(uint64_t limit) {
    for (uint64_t bits = limit + 1; levels_.empty() || bits > 1; bits = levels_.back().size())
      levels_.emplace_back((bits + 63) / 64);
  }

  void insert(uint64_t number) {
    for (auto& level : levels_) {
      uint64_t& word = level[number / 64];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << number % 64;
      if (!was_empty) return;
      number /= 64;
    }
  }
  void erase(uint64_t number) {
    for (auto& level : levels_) {
      uint64_t& word = level[number / 64];
      word &= ~(uint64_t{1} << number % 64);
      if (word != 0) return;
      number /= 64;
    }
  }
  // The least number >= `from`. REQUIRES: from <= limit.
  std::optional<uint64_t> least_from(uint64_t from) const {
    for (size_t up = 0; up < levels_.size(); ++up, from = from / 64 + 1) {
      if (from / 64 >= levels_[up].size()) return std::nullopt;
      const uint64_t word = levels_[up][from / 64] >> from % 64;
      if (word != 0) return least_below(up, from + static_cast<uint64_t>(std::countr_zero(word)));
    }
    return std::nullopt;
  }

 private:
  uint64_t least_below(size_t level, uint64_t number) const {
    while (level-- > 0)
      number = 64 * number + static_cast<uint64_t>(std::countr_zero(levels_[level][number]));
    return number;
  }

  std::vector<std::vector<uint64_t>> levels_;  // a bit is set if the word below is not empty
};

}  // namespace lockstep::data
