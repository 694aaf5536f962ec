// Which data set each unit of a mixture is from, by weights. It is arithmetic over a pattern. Every
// block repeats the pattern; a block has as many units as the sum of the weights.
//
//   weights 3, 2, 1   │ 0 1 0 2 1 0 │ 0 1 0 2 1 0 │ 0 1 ...
//   an epoch of 7 samples of 0: two blocks, and the first unit of the next
//
// An epoch uses every sample of the first data set once. The other data sets run through passes of
// their own. A pass goes on where the epoch before left it.
//
// INVARIANTS
//  M1 Every block holds each data set as often as its weight says; weights are in lowest terms.
//  M2 The first n units of an epoch contain n * share units of each set, within less than one.
//  M3 The units of a set, over all epochs, count its passes up: every (pass, position) comes once,
//     and no pass begins before the pass before is used up.
//  M4 The mixture is a function of the parts' samples and weights only: it does not depend on
//     slots, batches or workers.
//
// Source of the pattern: Tijdeman: The chairman assignment problem, Discrete Mathematics 32 (1980):
// the next set is the one with the earliest deadline among those that may be next.
//
// Thread-safety: immutable; all calls from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep {

// One data set of a mixture.
struct MixedPart {
  std::string fingerprint;
  uint64_t samples = 0;
  uint32_t weight = 0;
  bool operator==(const MixedPart&) const = default;
};

// One block: for each place, the set and the number of the set's unit.
class MixPattern {
 public:
  // REQUIRES: weights that check_mixture() accepts.
  explicit MixPattern(std::span<const uint32_t> weights);

  uint64_t size() const { return sets_.size(); }
  uint32_t weight(uint32_t set) const { return weights_[set]; }  // in one block
  uint32_t set_at(uint64_t place) const { return sets_[place]; }
  uint32_t count_before(uint64_t place) const { return counts_[place]; }  // of the same set
  // How many units of the set lie before `place`, which may be size().
  uint64_t count(uint32_t set, uint64_t place) const;

 private:
  std::vector<uint32_t> weights_;
  std::vector<uint8_t> sets_;
  std::vector<uint32_t> counts_;
};

class Mixture {
 public:
  struct Unit {
    uint32_t set = 0;
    uint64_t pass = 0;
    uint64_t position = 0;  // in the pass
  };

  // REQUIRES: check_mixture(parts).
  explicit Mixture(std::span<const MixedPart> parts);

  uint64_t units() const { return units_; }  // of an epoch
  // Units of this set in an epoch.
  uint64_t units_of(uint32_t set) const { return of_set_[set]; }
  // REQUIRES: position < units().
  Unit at(Epoch epoch, uint64_t position) const;

 private:
  MixPattern pattern_;
  std::vector<uint64_t> samples_;  // by set
  uint64_t units_;
  std::vector<uint64_t> of_set_;
};

// kUsage, naming a set by its number, if weights or samples are impossible, or if a set would have
// no unit in an epoch.
Status check_mixture(std::span<const MixedPart> parts);

// Units of an epoch. REQUIRES: check_mixture(parts).
uint64_t units_of(std::span<const MixedPart> parts);

}  // namespace lockstep
