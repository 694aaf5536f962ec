// Turns rows of the journal into the values that a new term and the audit begin with. Internal to
// what reads DIR/journal.db.
//
// Thread-safety: one thread for a Database.
#pragma once

#include <vector>

#include "coordinator/journal/journal.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

Result<JournalContents> read_contents(Database& database);
Result<std::vector<LedgerRow>> read_ledger(Database& database);
Result<std::vector<FoldEntry>> read_folds(Database& database);
// Journal::batches().
Result<std::vector<RecordsEntry>> read_batches(Database& database, Generation generation, Step from,
                                               Step to);

// A journal of another version is refused, never converted silently. 0: it has no tables yet.
Result<uint64_t> read_version(Database& database, const std::string& path);

// SQLite keeps NaN as NULL.
double real_or_nan(const Statement& row, int column);

}  // namespace lockstep::coordinator
