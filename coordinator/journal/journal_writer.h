// Writes journal entries as rows, with one prepared statement per kind of entry. Internal to the
// SQLite journal.
//
// Thread-safety: one thread. REQUIRES: the Database outlives it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/clock.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

class JournalWriter {
 public:
  static Result<JournalWriter> create(Database& database);

  // REQUIRES: inside a transaction.
  Status write(const JournalEntry& entry, BothClocks now);
  // Ends every transaction: writes how long the present term has lived.
  Status end(BothClocks now);

 private:
  struct Visitor;
  explicit JournalWriter(Database& database) : database_(&database) {}

  Database* database_;
  std::optional<BothClocks> term_began_;                          // by this process
  std::map<std::string, std::unique_ptr<Statement>> statements_;  // by name, journal_writer.cc
};

}  // namespace lockstep::coordinator
