// The Journal in SQLite: DIR/journal.db, write-ahead log, every commit fsynced, exactly one
// connection. Tools ask the coordinator; the file is theirs, to read, only when no coordinator
// lives.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

struct SqliteJournalOptions {
  uint64_t max_pages = 0;  // of 4 KiB; 0: as many as the disk holds. For tests of a full disk.
};

// Creates the file and its tables when it is not there. kUsage when another process has it open or
// when it was written by another version; kInternal for I/O.
Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteJournalOptions options = {});

// For tools, when no coordinator lives: commit() is an error. kNoInput when there is no journal,
// kUsage when it is of another version or nothing was ever written to it.
Result<std::unique_ptr<Journal>> read_sqlite_journal(const std::string& path);

}  // namespace lockstep::coordinator
