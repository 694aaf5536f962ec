// Slots that are left out by policy (train.on_bad_samples: skip): where they hold, and from where a
// run goes on that has to do their step again.
//
// A SkipEntry names the generation in which its slots did harm, and holds in every newer one. Where
// the harm is in the lineage already (a loss that is no number), the lineage has to be cut before
// the step. That is due as long as the row that covers the step is not of a newer generation: the
// ledger itself says it, so that no crash between the two commits can lose the cut.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>

#include "coordinator/journal/journal.h"
#include "data/order/skip_set.h"

namespace lockstep::coordinator {

// Its slots are left out of that generation: it is newer than the one in which they did harm.
inline bool holds_in(const SkipEntry& skip, Generation generation) {
  return skip.generation < generation;
}

// What a generation leaves out.
data::SkipSet skips_in(std::span<const SkipEntry> skips, Generation generation);

// How many samples a step of that generation counts.
uint64_t samples_in(std::span<const SkipEntry> skips, Generation generation, Step step,
                    const data::RunShape& shape);

// No checkpoint of more steps counts: a later one holds what a skipped step did, or what members
// that disagreed made (corruption.h). Nothing: all of the lineage count.
std::optional<Step> newest_sound(const JournalContents& contents);

}  // namespace lockstep::coordinator
