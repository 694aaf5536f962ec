// Silent corruption: members that hold other weights than the others, or compute something else
// from the same, without saying so (PROTOCOL.md, Trouble that is not death).
//
// Every train.check_every steps each member reports hashes of its weights, of one slot's gradient,
// which three ranks compute, and of one slice of a sum, which three ranks add up. When all members
// of the generation have reported:
//   all agree          the check is journalled; a rollback has to go no further back than to it
//   one is outvoted    its place takes no part in the run any more. With train.on_corruption
//                      rollback the term ends; with continue only that worker goes, like one that
//                      died, and the lineage is tainted
//   no majority        what everyone said is journalled, nobody is put out; the term ends
// The next term begins from the newest checkpoint at or before the last check at which all agreed;
// that limit is in the journal, so that it holds whatever process begins it. When it comes to the
// step of a check without majority again, both attempts are put together (check_finding.h):
//   all agree now      who said something else then is put out; nothing is computed again
//   they differ again  a value that several said is right, and the others are outvoted; if there is
//                      none, the run ends
//
// INVARIANTS
//  C1 No worker of a place that was put out is a member of a generation that starts afterwards, so
//     it is never a state source. No later term gives it work either.
//  C2 A difference is open until the lineage is cut at or before the last agreement, or the policy
//     was to go on. No checkpoint after that agreement counts while it is open.
//  C3 With `continue`, no checkpoint counts that an outvoted worker wrote since the last agreement.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "coordinator/journal/journal.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"

namespace lockstep::coordinator {

// Whether members compare each other: other machines may compute other bits where that is allowed.
bool is_checking(const Options& options);

CheckHistory check_history(const JournalContents& contents);

// Members have differed and the lineage was not cut since: no checkpoint of more steps counts.
std::optional<Step> newest_trusted(const JournalContents& contents);

// C3: `member` wrote weights after `step` steps when it had been wrong since the check before.
bool wrote_wrong(const JournalContents& contents, MemberId member, Step step);

}  // namespace lockstep::coordinator
