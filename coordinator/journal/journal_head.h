// RUN_DIR/journal.head: one line that tells how far the journal is. The writer of the journal
// replaces it in place after every commit, without an fsync.
//
//   "lockstep journal 1 <lineage id> <term> <sequence> <digest> <crc>\n"
//
// So it may be older than the journal, and never newer: where it tells of a later commit, the
// journal has lost its end. Where it is missing or unreadable, it tells nothing.
//
// Thread-safety: one thread; one file for all journals of a run directory.
#pragma once

#include <optional>
#include <string>

#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

std::string head_path(const std::string& journal);  // beside it

std::optional<JournalMark> read_head(const std::string& path);

class JournalHead {
 public:
  explicit JournalHead(std::string path) : path_(std::move(path)) {}
  ~JournalHead();
  JournalHead(const JournalHead&) = delete;
  JournalHead& operator=(const JournalHead&) = delete;

  // An error is none of the journal's: the line is then older than it could be.
  void write(const JournalMark& mark);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lockstep::coordinator
