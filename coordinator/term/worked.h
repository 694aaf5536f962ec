// Finds which members can still report which steps when a coordinator takes over.
//
// Thread-safety: plain functions.
#pragma once

#include "comm/base/status.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/beginning.h"

namespace lockstep::coordinator {

// Fills `worked` from the rows in `closed`. A member that was behind where a row ended fetched the
// state of the last step, and has no record of it: only sources of the next start have one.
// REQUIRES: `closed` is ascending, and `row` and `start` are set.
Status add_worked(Journal& journal, const JournalContents& contents, LivingGeneration* living);

}  // namespace lockstep::coordinator
