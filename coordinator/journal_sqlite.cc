#include "coordinator/journal_sqlite.h"

#include <limits>

#include "coordinator/journal_schema.h"
#include "coordinator/journal_writer.h"
#include "coordinator/sqlite.h"

namespace lockstep::coordinator {
namespace {

// SQLite keeps NaN as NULL.
double real_or_nan(const Statement& row, int column) {
  return row.is_null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(std::unique_ptr<Database> database, JournalWriter writer)
      : database_(std::move(database)), writer_(std::move(writer)) {}

  Status commit(std::span<const JournalEntry> entries, int64_t wall_ms) override {
    if (!error_.is_ok()) return error_;
    error_ = transaction(entries, wall_ms);
    return error_;
  }

  Result<JournalContents> load() override;
  Status visit_steps(Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit) override;
  Result<std::vector<RecordsEntry>> batches(Generation generation, Step from, Step to) override;

 private:
  Status transaction(std::span<const JournalEntry> entries, int64_t wall_ms) {
    LOCKSTEP_RETURN_IF_ERROR(database_->execute("BEGIN IMMEDIATE"));
    for (const JournalEntry& entry : entries) {
      if (Status status = writer_.write(entry, wall_ms); !status.is_ok()) {
        // What the failed transaction left is undone when the file is opened again, at the latest.
        (void)database_->execute("ROLLBACK");
        return status;
      }
    }
    return database_->execute("COMMIT");
  }

  Status load_checkpoints(JournalContents& contents);
  Status load_evals(JournalContents& contents);

  std::unique_ptr<Database> database_;
  JournalWriter writer_;
  Status error_;
};

Result<JournalContents> SqliteJournal::load() {
  JournalContents contents;
  LOCKSTEP_ASSIGN_OR_RETURN(auto identity, database_->prepare("SELECT key, value FROM identity"));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, identity->step());
    if (!row) break;
    contents.identity.push_back({identity->text(0), identity->text(1)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(contents.last_term, database_->integer("SELECT max(term) FROM terms"));
  LOCKSTEP_ASSIGN_OR_RETURN(contents.last_member,
                            database_->integer("SELECT max(member) FROM members"));
  LOCKSTEP_ASSIGN_OR_RETURN(contents.last_generation,
                            database_->integer("SELECT max(generation) FROM generations"));
  LOCKSTEP_ASSIGN_OR_RETURN(contents.ledger, read_ledger(*database_));
  LOCKSTEP_RETURN_IF_ERROR(load_checkpoints(contents));
  LOCKSTEP_RETURN_IF_ERROR(load_evals(contents));
  return contents;
}

Status SqliteJournal::load_checkpoints(JournalContents& contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows, database_->prepare("SELECT name, step, generation, member, manifest_sha256, "
                                    "weights_sha256, bytes, final, state FROM checkpoints "
                                    "ORDER BY step, generation"));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return Status::ok();
    contents.checkpoints.push_back({rows->text(0), rows->integer(1), rows->integer(2),
                                    rows->integer(3), rows->text(4), rows->text(5),
                                    rows->integer(6), rows->integer(7) != 0,
                                    static_cast<CheckpointState>(rows->integer(8))});
  }
}

Status SqliteJournal::load_evals(JournalContents& contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows, database_->prepare("SELECT generation, step, epoch, samples, correct, loss "
                                    "FROM evals WHERE rolled_back = 0 ORDER BY step, generation"));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return Status::ok();
    contents.evals.push_back({rows->integer(0), rows->integer(1),
                              static_cast<Epoch>(rows->integer(2)), rows->integer(3),
                              rows->integer(4), real_or_nan(*rows, 5)});
  }
}

Status SqliteJournal::visit_steps(Step from, Step to,
                                  const std::function<void(const StepEntry&)>& visit) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows,
      database_->prepare("SELECT s.generation, s.step, s.epoch, s.samples, s.correct, s.loss, "
                         "s.lr, s.skipped, s.common_hash, s.wall_us FROM steps s "
                         "JOIN ledger l ON l.generation = s.generation AND l.rolled_back = 0 "
                         "AND s.step >= l.first_step AND "
                         "(l.last_step IS NULL OR s.step < l.last_step) "
                         "WHERE s.step >= ? AND s.step < ? ORDER BY s.step"));
  rows->bind(from).bind(to);
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return Status::ok();
    StepEntry entry;
    entry.generation = rows->integer(0);
    entry.step = rows->integer(1);
    entry.epoch = static_cast<Epoch>(rows->integer(2));
    entry.samples = rows->integer(3);
    entry.correct = rows->integer(4);
    entry.loss = real_or_nan(*rows, 5);
    entry.lr = real_or_nan(*rows, 6);
    entry.skipped = rows->integer(7) != 0;
    entry.common_hash = rows->integer(8);
    entry.wall_us = rows->integer(9);
    visit(entry);
  }
}

Result<std::vector<RecordsEntry>> SqliteJournal::batches(Generation generation, Step from,
                                                         Step to) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows, database_->prepare("SELECT member, batch, records FROM record_batches WHERE "
                                    "generation = ? AND last_step >= ? AND first_step < ? "
                                    "ORDER BY member, batch"));
  rows->bind(generation).bind(from).bind(to);
  std::vector<RecordsEntry> found;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return found;
    wire::StepRecords records;
    if (!records.ParseFromString(rows->text(2))) {
      return Status(Code::kInternal, "the journal holds a record batch that cannot be read");
    }
    found.push_back({generation,
                     rows->integer(0),
                     rows->integer(1),
                     {records.records().begin(), records.records().end()}});
  }
}

Status create_or_check(Database& database, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, database.integer("PRAGMA user_version"));
  if (version == kJournalVersion) return Status::ok();
  if (version != 0) {
    return {Code::kUsage, "the journal " + path + " has version " + std::to_string(version) +
                              ", this program knows " + std::to_string(kJournalVersion) +
                              ": use the version of lockstep that began the run"};
  }
  return database.execute("BEGIN IMMEDIATE;" + std::string(kJournalSchema) +
                          "PRAGMA user_version=" + std::to_string(kJournalVersion) + "; COMMIT;");
}

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteJournalOptions options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto database, Database::open(path));
  LOCKSTEP_RETURN_IF_ERROR(create_or_check(*database, path));
  if (options.max_pages != 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        database->execute("PRAGMA max_page_count=" + std::to_string(options.max_pages)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto writer, JournalWriter::create(*database));
  return std::unique_ptr<Journal>(
      std::make_unique<SqliteJournal>(std::move(database), std::move(writer)));
}

}  // namespace lockstep::coordinator
