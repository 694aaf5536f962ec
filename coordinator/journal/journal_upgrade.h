// Journals of earlier versions of Lockstep.
//
// Thread-safety: one thread for a Database.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

// The version of the journal's tables; 0: it has none yet. kUsage if this program cannot read it.
Result<uint64_t> read_version(Database& database, const std::string& path);

// Adds the tables that a journal of this version lacks, in one transaction. No row changes. Returns
// what happened, for people; empty if it lacked nothing.
Result<std::string> upgrade_journal(Database& database, uint64_t version, const std::string& path);

// Whether the tables of version 5, 6 and 7 are there.
Result<bool> has_eval_reports(Database& database);
Result<bool> has_step_reports(Database& database);
Result<bool> has_step_pieces(Database& database);

}  // namespace lockstep::coordinator
