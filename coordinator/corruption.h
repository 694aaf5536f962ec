// Silent corruption: members that hold other weights than the others, or compute something else
// from the same, without saying so (PROTOCOL.md, Trouble that is not death).
//
// Every train.check_every steps each member reports hashes of its weights, of one slot's gradient,
// which three ranks compute, and of one slice of a sum, which three ranks add up. When all members
// of the generation have reported:
//   all agree          the check is journalled; a rollback has to go no further back than to it
//   one is outvoted    its place takes no part in the run any more; the term ends
//   no majority        all who differ are named, nobody is put out; the term ends, and the second
//                      time that they differ after the same step, the run
// The next term begins from the newest checkpoint at or before the last check at which all agreed;
// that limit is in the journal, so that it holds whatever process begins it.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "coordinator/journal.h"
#include "coordinator/options.h"
#include "coordinator/state.h"

namespace lockstep::coordinator {

// Whether members compare each other: other machines may compute other bits where that is allowed.
bool is_checking(const Options& options);

CheckHistory check_history(const JournalContents& contents);

// Members have differed and the lineage was not cut since: no checkpoint of more steps counts.
std::optional<Step> newest_trusted(const JournalContents& contents);

}  // namespace lockstep::coordinator
