// train.global_batch auto: the coordinator's part.
//
// STATES, by what the journal's identity says
//   open      no identity. Every worker measures before it registers, and says what slot fits it
//             (Register.largest_slot). When all workers of generation 1 are here, G is V times the
//             least of these, and the whole identity, with it, is journalled in the turn that ends
//             the term. Nothing else is done in such a term.
//   resolved  the next term, and every one after it, begins with G from the journal, like V. The
//             workers come back as they do after any term, are told the job, and build on.
//
//   open ── killed before that commit ──▶ open: who comes back says what it has measured
//   open ── killed after it ────────────▶ resolved
//
// INVARIANTS
//  G1 G is in the journal before anybody hears of it, and never changes: options are those of a
//     term, and a term begins with what is journalled (begin.h).
//  G2 No generation is prepared while it is open, so no step has ever seen another G.
//
// A term more costs one reconnect, once in a run; in exchange there is one way in which a job
// becomes the options that everything is computed from.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::coordinator {

// V times the least of `largest`, rounded down to a power of two, and no slot larger than its share
// of the data set. REQUIRES: largest is not empty, none is 0; slots > 0.
uint64_t auto_global_batch(uint32_t slots, uint64_t samples, const std::vector<uint64_t>& largest);

}  // namespace lockstep::coordinator
