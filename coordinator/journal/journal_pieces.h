// The closed pieces (step_piece.h) in the SQLite journal: the table `step_pieces`.
//
// The transaction that writes the last step of a piece closes it. A transaction that cuts the
// lineage, or writes a step of a closed piece again, opens the pieces from there on again
// (journal_writer.cc). So after a crash steps and pieces come from the same commit.
//
// Internal to the SQLite journal. Thread-safety: one thread for a Database.
#pragma once

#include <vector>

#include "comm/base/alive.h"
#include "comm/base/status.h"
#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/sqlite.h"
#include "coordinator/journal/step_piece.h"

namespace lockstep::coordinator {

// Both give nothing for a journal that is older than pieces.
Result<Step> closed_steps(Database& database);
Result<std::vector<StepPiece>> read_pieces(Database& database);

// Closes each piece of the surviving lineage that has all its steps, up to `end`. Returns how many.
// Calls `alive` for each. REQUIRES: inside a transaction.
Result<uint64_t> close_pieces(Database& database, JournalChain& chain, Step end,
                              const AliveFn& alive = {});

}  // namespace lockstep::coordinator
