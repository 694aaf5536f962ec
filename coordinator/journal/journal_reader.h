// Reads rows of the journal into the values with which a new term and the audit begin. Internal to
// the SQLite journal.
//
// Thread-safety: one thread for a Database.
#pragma once

#include <functional>
#include <vector>

#include "coordinator/journal/journal.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

Result<JournalContents> read_contents(Database& database);
Result<std::vector<LedgerRow>> read_ledger(Database& database);
Result<std::vector<FoldEntry>> read_folds(Database& database);
// Journal::visit_steps().
Status visit_lineage(Database& database, Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit);
// Journal::batches().
Result<std::vector<RecordsEntry>> read_batches(Database& database, Generation generation, Step from,
                                               Step to);

// Sets what `report`, lockstep.wire.StepRecord in bytes, has; empty: nothing.
void take_report(const std::string& report, StepEntry* entry);

// SQLite keeps NaN as NULL.
double real_or_nan(const Statement& row, int column);

}  // namespace lockstep::coordinator
