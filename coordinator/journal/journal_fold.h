// Takes the records that a FoldEntry replaces out of their batches. Internal to the SQLite journal.
//
// Thread-safety: one thread.
#pragma once

#include "coordinator/journal/journal_entry.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

// REQUIRES: inside a transaction.
Status fold_batches(Database& database, const FoldEntry& fold);

}  // namespace lockstep::coordinator
