// The difference that one check found, and the wrong members: by majority, or from the values of an
// earlier check of the same step (WitnessEntry).
//
// Two attempts at one step must give the same bits, so decide() counts their values together. A
// value that several members reported is right. Members that reported another value were wrong, in
// this attempt or in the earlier one. Values of different work (other slots or slices, after a
// change of the job or of the number of workers) never coincide, and then prove nothing.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/state/check_state.h"

namespace lockstep::coordinator {

struct CheckFinding {
  CheckSubject subject = CheckSubject::kWeights;
  std::map<MemberId, uint64_t> values;   // of the subject; empty: all agree in everything
  std::string what;                      // "worker A <what> than the others"
  std::optional<uint64_t> right;         // nothing: no majority
  size_t votes = 0;                      // how many members reported `right`
  bool by_witness = false;               // the majority needs both attempts
  bool is_alone = false;                 // its only member differs from itself
  std::set<MemberId> copies;             // PendingCheck.copies, if the subject is the weights
  std::vector<WitnessEntry> wrong_then;  // wrong in an earlier attempt at the step

  bool is_difference() const { return !values.empty(); }
  // The members whose value is not the right one, except copies; without a majority, all members.
  std::vector<MemberId> odd() const;
  // The values of the members that are no copies.
  std::map<MemberId, uint64_t> voices() const;
  bool has_wrong_copy() const;
};

// REQUIRES: the reports of the check are complete. Wrong weights make everything else wrong, and a
// wrong gradient makes its sum wrong, so the first difference in this order is the finding.
CheckFinding examine(const PendingCheck& check, Step step);

// Adds the values of earlier attempts at `step` to `finding`. `places`: the places of the members
// in it.
void ask_witnesses(const std::vector<WitnessEntry>& witnesses, Step step,
                   const std::map<MemberId, Place>& places, CheckFinding* finding);

// Returns the witnesses with other values in earlier attempts at `step`, or none if no witness had
// the present value. REQUIRES: all members agree in everything now.
std::vector<WitnessEntry> refuted(const std::vector<WitnessEntry>& witnesses, Step step,
                                  const PendingCheck& check);

// "other weights", "another gradient", "another sum"
const char* other_result(CheckSubject subject);

}  // namespace lockstep::coordinator
