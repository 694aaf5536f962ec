// Slots that the run leaves out (train.on_bad_samples: skip): in which generations, and from which
// checkpoint the run goes on to do their step again.
//
// A SkipEntry names the newest generation that was given out, started or planned, when the harm of
// its slots was known, and holds in every newer one. If the harm is in the lineage already (a loss
// that is not a number), the lineage must be cut before the step. The cut is due until the ledger
// row that covers the step is of a newer generation. The ledger itself shows this, so a crash
// between the two commits cannot lose the cut.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>

#include "comm/run/plan/skip_set.h"
#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

// Whether `generation` leaves the slots out: it was given out when their harm was known.
inline bool holds_in(const SkipEntry& skip, Generation generation) {
  return skip.generation < generation;
}

// The slots that `generation` leaves out.
SkipSet skips_in(std::span<const SkipEntry> skips, Generation generation);

// How many samples a step of that generation counts.
uint64_t samples_in(std::span<const SkipEntry> skips, Generation generation, Step step,
                    const RunShape& shape);

// No checkpoint of more steps counts: a later one holds the effect of a skipped step, or of members
// that disagreed (corruption.h). Nothing: all checkpoints of the lineage count.
std::optional<Step> newest_sound(const JournalContents& contents);

}  // namespace lockstep::coordinator
