// RUN_DIR/journal.head: one line that tells how far the journal is. The writer of the journal
// replaces it in place after every commit, without an fsync.
//
//   "lockstep journal 1 <lineage id> <term> <sequence> <digest> <crc>\n"
//
// So it may be older than the journal, and never newer: where it tells of a later commit, the
// journal has lost its end. Where it is missing or unreadable, it tells nothing.
//
// All journals of a run directory share it, and a coordinator that was stopped just before a commit
// may write it after another seat has claimed the next term, say 7 (comm/run/directory/claim.h).
// The journal-7.db of that seat begins as a copy made before this commit, and no process reads what
// the older coordinator still writes. So
//
//   - a line of a term before 7 says nothing against journal-7.db, whether or not this has a commit
//     of its own yet
//   - a copy is compared with the line before it gets its name (journal_copy.h), by the rule for
//     the journal it was made from. The new coordinator reads the line before it looks which
//     journal is the newest: a whole journal has every commit that the line told of until then. A
//     copy that has its name needs no second look, even if its maker has died
//
// Thread-safety: one thread; one file for all journals of a run directory.
#pragma once

#include <optional>
#include <string>

#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

std::string head_path(const std::string& journal);  // next to the journal

std::optional<JournalMark> read_head(const std::string& path);

// The term with which a journal's file began as a copy: 7 for DIR/journal-7.db; 0: it is no copy.
Term first_term(const std::string& journal);

// The objection that `head` proves against a journal with this mark and this first term, as half a
// sentence. Empty: none, as always where the journal has no commit.
std::string against_head(const JournalMark& mark, const std::optional<JournalMark>& head,
                         Term first_term);

// "has lost its end: ...". `later`: the commit that `witness` has seen.
std::string lost_end(const JournalMark& mark, uint64_t later, const std::string& witness);

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
