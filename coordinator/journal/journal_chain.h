// The checksum of the journal in SQLite, in its table `chain`: one row with
//
//   lineage   32 random hex digits from the creation of the file; the same in every copy
//   sequence  the number of commits
//   content   the sum of the hashes of all rows of all other tables
//   digest    chained: hash(digest before, sequence, content)
//
// Triggers that live as long as the connection keep `content`: they add the hash of a row that
// comes and subtract the hash of a row that goes, whatever statement does it. So a commit costs
// what it changes. A check of everything reads the file once. A check of the open part takes the
// sums of closed pieces of steps (step_piece.h) from their summaries, so its cost does not grow
// with the run (adr/0016).
//
// INVARIANTS
//  H1 A flipped bit in a row, a lost row and a row that somebody edited make check(kWhole) fail,
//     except with probability 2^-64. check(kOpenPart) finds them everywhere but in the rows of
//     closed pieces.
//  H3 check_steps() finds them in the rows of closed pieces. A reader of these rows calls it first,
//     so no row is believed before its sum was compared.
//  H2 advance() is in the transaction whose rows it covers.
//
// A journal that is whole and only too short passes check(): journal_head.h.
//
// Thread-safety: one thread. REQUIRES: the Database outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/base/alive.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {

class JournalChain {
 public:
  // Writes the first row. REQUIRES: inside the transaction that creates the other tables.
  static Status create(Database& database);

  // kBadData if the row is missing.
  static Result<std::unique_ptr<JournalChain>> open(Database& database);
  ~JournalChain();
  JournalChain(const JournalChain&) = delete;
  JournalChain& operator=(const JournalChain&) = delete;

  // kBadData if the file is damaged. Calls `alive` now and then.
  Status check(JournalCheck what, const AliveFn& alive = {});
  // The closed pieces that have steps in [from, to), each once. kBadData names the steps.
  Status check_steps(Step from, Step to);
  // The sum of the hashes of the rows of steps in [first, last), of all generations.
  Result<uint64_t> sum_steps(Step first, Step last);

  // From now on rows are counted as they change; for writers.
  Status watch();
  // Ends a commit. REQUIRES: watch().
  Status advance();

  void began(Term term) { mark_.term = term; }
  const JournalMark& mark() const { return mark_; }

 private:
  struct Table {
    std::string name;
    std::vector<std::string> columns;
  };

  explicit JournalChain(Database& database) : database_(database) {}
  Result<std::vector<Table>> tables();
  Status check_pages(const std::vector<Table>& tables, Step closed);
  Status sum_rows(const Table& table, const std::string& where, const AliveFn& alive);

  Database& database_;
  JournalMark mark_;
  uint64_t content_ = 0;    // as the row says, and then as the triggers count
  uint64_t sum_ = 0;        // where the function of check() and of the triggers adds
  bool is_whole_ = false;   // everything was checked
  std::set<Step> checked_;  // else: the first steps of pieces whose rows were
};

}  // namespace lockstep::coordinator
