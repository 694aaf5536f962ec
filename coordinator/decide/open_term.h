// The open term: the workers say what the run is, as far as its job does not.
//
// WHAT MAY BE OPEN, and who tells it
//   G      train.global_batch is auto. Every worker measures before it registers, and reports the
//          largest slot that fits (Register.largest_slot). G is V times the least of these
//          (state/auto_batch.h).
//   facts  of a script's data, and what the script says of itself. Every worker reports both
//          (Register.facts, Register.identity), and all must report the same.
//
// STATES, by the identity in the journal
//   open      something of the above is not in it. When all workers of generation 1 are here and
//             agree, decide() journals the whole identity in the turn that ends the term. Such a
//             term does nothing else.
//   resolved  the next term, and every later one, begins with these values from the journal
//             (resolve_options() of state/options.h), like V. The workers come back as after any
//             term, and get the job.
//
//   open ── killed before that commit ──▶ open: workers report again when they come back
//   open ── killed after that commit ───▶ resolved
//
// A journal that was rebuilt from a checkpoint (term/rebuild.h) does not know what the script says
// of itself. Its first term is open once more, with the facts as they were.
//
// INVARIANTS
//  G1 The values are in the journal before any worker hears of them, and never change: options
//     belong to a term, and a term begins with the journalled values (begin.h).
//  G2 No generation is prepared in an open term, so no step has ever seen other values.
//
// The additional term costs one reconnect, once in a run. In exchange there is one way from a job
// to the options.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {

// Journals what the workers have told, and ends the term. REQUIRES: all of generation 1 are here,
// and were compared with the first when they registered.
Reason resolve_open_term(Turn& turn, const std::vector<MemberId>& members);

// The fault in what a script's worker reports, in words ("0 training samples"). Empty: there is
// none.
std::string malformed_script(const wire::Register& message);

}  // namespace lockstep::coordinator
