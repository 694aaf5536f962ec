// What members differ in at one check, and who of them is wrong: by majority, or by what was said
// when the same step was checked before (WitnessEntry).
//
// Two attempts at one step must give the same bits, so their values may be put together. A value
// that several said is right; who said another one was wrong, now or then. Values of different
// work (other slots or slices, after a change of the job or of the number of workers) never
// coincide, and then prove nothing.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/state/check_state.h"

namespace lockstep::coordinator {

struct CheckFinding {
  CheckSubject subject = CheckSubject::kWeights;
  std::map<MemberId, uint64_t> values;   // of the subject; empty: all agree in everything
  std::string what;                      // "worker A <what> than the others"
  std::optional<uint64_t> right;         // nothing: nobody can tell
  size_t votes = 0;                      // how often `right` was said, if it was
  bool by_witness = false;               // it took both attempts to tell
  std::vector<WitnessEntry> wrong_then;  // in an earlier attempt at the step

  bool is_difference() const { return !values.empty(); }
  // Who said another value than the right one; all, if nobody can tell.
  std::vector<MemberId> odd() const;
};

// Of a check whose reports are complete. Wrong weights make everything else wrong, and a wrong
// gradient comes before its sum: the first difference in this order is the finding.
CheckFinding examine(const PendingCheck& check, Step step);

// Puts `finding` together with what was said of its subject in earlier attempts at `step`.
// `places`: of the members in it.
void ask_witnesses(const std::vector<WitnessEntry>& witnesses, Step step,
                   const std::map<MemberId, Place>& places, CheckFinding* finding);

// All agree in everything now. Who had said something else in earlier attempts at `step`; nobody
// if none of them had said what all say now.
std::vector<WitnessEntry> refuted(const std::vector<WitnessEntry>& witnesses, Step step,
                                  const PendingCheck& check);

// "other weights", "another gradient", "another sum"
const char* other_result(CheckSubject subject);

}  // namespace lockstep::coordinator
