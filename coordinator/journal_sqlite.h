// The Journal in SQLite: DIR/journal.db, write-ahead log, every commit fsynced, exactly one
// connection. Tools ask the coordinator; the file is theirs only when no coordinator lives.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "coordinator/journal.h"

namespace lockstep::coordinator {

struct SqliteJournalOptions {
  uint64_t max_pages = 0;  // of 4 KiB; 0: as many as the disk holds. For tests of a full disk.
};

// Creates the file and its tables when it is not there. kUsage when another process has it open or
// when it was written by another version; kInternal for I/O.
Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteJournalOptions options = {});

}  // namespace lockstep::coordinator
