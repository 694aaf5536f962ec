// The Journal in SQLite: DIR/journal.db, with a write-ahead log, an fsync for every commit, and
// exactly one connection. Tools ask the coordinator, and read the file only if no coordinator
// lives.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/alive.h"
#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

struct SqliteJournalOptions {
  uint64_t max_pages = 0;  // of 4 KiB; 0: as many as the disk holds. For tests of a full disk.
  bool has_head = true;    // every commit writes journal_head.h
  JournalCheck check = JournalCheck::kWhole;
  AliveFn alive = {};  // is called while an older journal gets its summaries, or is checked
  // Is told if an older version of Lockstep wrote the journal (journal_upgrade.h).
  std::function<void(const std::string& what)> on_upgrade = {};
};

// Creates the file and its tables if the file does not exist, and adds tables that came later.
// kUsage if another process has it open
// or another version wrote it. kBadData if it is damaged. kInternal for I/O.
Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteJournalOptions options = {});

// The contents of a journal whose coordinator is dead. Changes no byte. Where there is no file, or
// nothing was ever written to it, contents.mark.sequence is 0. Errors as open_sqlite_journal().
Result<JournalContents> peek_journal(const std::string& path,
                                     JournalCheck check = JournalCheck::kWhole,
                                     const AliveFn& alive = {});

// For tools, when no coordinator lives; commit() is an error. kNoInput if there is no journal.
// kUsage if another version wrote it, or no coordinator ever wrote to it. kBadData if it is
// damaged.
Result<std::unique_ptr<Journal>> read_sqlite_journal(const std::string& path,
                                                     JournalCheck check = JournalCheck::kWhole);

}  // namespace lockstep::coordinator
