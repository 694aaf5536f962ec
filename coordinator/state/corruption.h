// Silent corruption: a member holds other weights than the others, or computes other results from
// the same weights, and no error shows it (PROTOCOL.md, "Trouble that is not death").
//
// At a check (comm/run/evaluation/check_after.h) each member reports three hashes:
//   - of its weights
//   - of the gradient of one slot, which three ranks compute; a member that is alone, twice
//   - of one slice of a sum, which three ranks add up
// Before a checkpoint, and wherever comm.numerics lets results differ, members report the hash of
// their weights only. When all members of the generation have reported:
//   all agree          the coordinator journals the check; no rollback goes further back
//                      A member that got its weights from another one since then has no vote on
//                      them: it holds what that one held
//   one is outvoted    the coordinator expels its place from the run. With train.on_corruption
//                      rollback the term ends. With continue only that worker goes, like one that
//                      died, and the lineage is tainted
//   no majority        the coordinator journals all values and expels no member; the term ends
// The next term begins from the newest checkpoint at or before the last agreement. The journal has
// this limit, so it holds in a new process, too. When the next term reaches the step of a check
// without majority again, decide() compares both attempts (check_finding.h):
//   all agree now      the places with another value in the first attempt are expelled, and the
//                      members go on without computing anything again
//   they differ again  a value that several members reported is right, and the others are outvoted;
//                      without such a value the run ends
//
// INVARIANTS
//  C1 No worker of an expelled place is a member of a generation that starts afterwards, so it is
//     never a state source. No later term gives it work either.
//  C2 A difference is open until the lineage is cut at or before the last agreement, or the policy
//     was to continue. While it is open, no checkpoint after that agreement counts.
//  C3 With `continue`, checkpoints that an outvoted worker wrote since the last agreement do not
//     count.
//  C4 A checkpoint does not count before the members of its generation have agreed on the weights
//     of its step, if they still can. So no run ends with weights on which its members disagree.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "coordinator/journal/journal.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// Whether members compare their weights (train.check_every).
bool is_checking(const Options& options);
// Whether members also compare what they compute: only if all must compute the same bits.
bool compares_work(const Options& options);

CheckHistory check_history(const JournalContents& contents);

// If a difference is open: the last agreement. No checkpoint of more steps counts.
std::optional<Step> newest_trusted(const JournalContents& contents);

// C3: a check outvoted `member`, and `step` is after the agreement before that check.
bool wrote_wrong(const JournalContents& contents, MemberId member, Step step);

}  // namespace lockstep::coordinator
