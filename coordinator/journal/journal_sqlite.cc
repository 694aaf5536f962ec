#include "coordinator/journal/journal_sqlite.h"

#include <optional>

#include "coordinator/journal/file_place.h"
#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/journal_head.h"
#include "coordinator/journal/journal_pieces.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/journal_upgrade.h"
#include "coordinator/journal/journal_writer.h"
#include "coordinator/journal/sqlite.h"

namespace lockstep::coordinator {
namespace {

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(const std::string& path, std::unique_ptr<Database> database,
                std::unique_ptr<JournalChain> chain, std::optional<JournalWriter> writer,
                bool has_head)
      : database_(std::move(database)),
        chain_(std::move(chain)),
        writer_(std::move(writer)),
        head_path_(head_path(path)),
        first_term_(first_term(path)),
        file_(path),
        log_(path + "-wal") {
    if (has_head) head_ = std::make_unique<JournalHead>(head_path_);
    if (!writer_) error_ = Status(Code::kInternal, "this journal was opened for reading only");
  }

  Status commit(std::span<const JournalEntry> entries, BothClocks now) override {
    if (!error_.is_ok()) return error_;
    error_ = transaction(entries, now);
    if (error_.is_ok() && head_) head_->write(chain_->mark());
    return error_;
  }

  JournalMark mark() const override { return chain_->mark(); }

  Status look() override {
    LOCKSTEP_RETURN_IF_ERROR(file_.look());
    return log_.look();
  }
  Result<JournalContents> load() override;
  Result<std::vector<LedgerRow>> ledger() override { return read_ledger(*database_); }
  Result<std::vector<FoldEntry>> folds() override { return read_folds(*database_); }
  Result<std::vector<StepPiece>> pieces() override { return read_pieces(*database_); }
  Status visit_steps(Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit) override;
  Result<std::vector<RecordsEntry>> batches(Generation generation, Step from, Step to) override {
    return read_batches(*database_, generation, from, to);
  }
  Result<SlotMapEntry> slot_map(Generation generation) override;
  Result<std::string> start_of(Generation generation) override;

 private:
  Status transaction(std::span<const JournalEntry> entries, BothClocks now) {
    // Else the head of an earlier journal could stand next to a commit of this one.
    if (chain_->mark().sequence == 0 && head_) head_->write(chain_->mark());
    LOCKSTEP_RETURN_IF_ERROR(database_->execute("BEGIN IMMEDIATE"));
    for (const JournalEntry& entry : entries) {
      if (const auto* term = std::get_if<TermEntry>(&entry)) chain_->began(term->term);
      if (Status status = writer_->write(entry, now); !status.is_ok()) {
        // The next open of the file undoes what the failed transaction left, at the latest.
        (void)database_->execute("ROLLBACK");
        return status;
      }
    }
    LOCKSTEP_RETURN_IF_ERROR(close_due_pieces(entries));
    LOCKSTEP_RETURN_IF_ERROR(writer_->end(now));
    LOCKSTEP_RETURN_IF_ERROR(chain_->advance());
    return database_->execute("COMMIT");
  }

  // Only the last step of a piece can complete it.
  Status close_due_pieces(std::span<const JournalEntry> entries) {
    Step end = 0;
    for (const JournalEntry& entry : entries) {
      const auto* step = std::get_if<StepEntry>(&entry);
      if (step != nullptr && (step->step + 1) % kPieceSteps == 0) end = step->step + 1;
    }
    return end == 0 ? Status::ok() : close_pieces(*database_, *chain_, end).status();
  }

  std::unique_ptr<Database> database_;
  std::unique_ptr<JournalChain> chain_;
  std::optional<JournalWriter> writer_;  // none: for reading only
  std::string head_path_;
  Term first_term_ = 0;
  FilePlace file_;
  FilePlace log_;
  std::unique_ptr<JournalHead> head_;  // null: none is written
  Status error_;
};

Result<JournalContents> SqliteJournal::load() {
  LOCKSTEP_ASSIGN_OR_RETURN(JournalContents contents, read_contents(*database_));
  contents.mark = chain_->mark();
  contents.head = read_head(head_path_);
  contents.first_term = first_term_;
  return contents;
}

Result<SlotMapEntry> SqliteJournal::slot_map(Generation generation) {
  SlotMapEntry map{generation, {}, {}};
  LOCKSTEP_ASSIGN_OR_RETURN(auto rows,
                            database_->prepare("SELECT member, slot_begin, slot_end FROM slot_maps "
                                               "WHERE generation = ? ORDER BY rank"));
  rows->bind(generation);
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return map;
    map.members.push_back(rows->integer(0));
    map.runs.push_back(
        {static_cast<uint32_t>(rows->integer(1)), static_cast<uint32_t>(rows->integer(2))});
  }
}

Result<std::string> SqliteJournal::start_of(Generation generation) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows, database_->prepare("SELECT start FROM generations WHERE generation = ?"));
  rows->bind(generation);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool row, rows->step());
  return row ? rows->text(0) : std::string();
}

Status SqliteJournal::visit_steps(Step from, Step to,
                                  const std::function<void(const StepEntry&)>& visit) {
  LOCKSTEP_RETURN_IF_ERROR(chain_->check_steps(from, to));
  return visit_lineage(*database_, from, to, visit);
}

Status create_if_empty(Database& database, uint64_t version) {
  if (version != 0) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(database.execute(
      "BEGIN IMMEDIATE;" + std::string(kJournalSchema) + kEvalReportsTable + kStepReportsTable +
      kStepPiecesTable + "PRAGMA user_version=" + std::to_string(kJournalVersion)));
  LOCKSTEP_RETURN_IF_ERROR(JournalChain::create(database));
  return database.execute("COMMIT");
}

// Closes the pieces of a journal that another version wrote, or whose lineage was cut.
Status close_old_pieces(Database& database, JournalChain& chain, const AliveFn& alive) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Step closed, closed_steps(database));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t newest,
                            database.integer("SELECT coalesce(max(step), 0) FROM steps"));
  if (newest + 1 < closed + kPieceSteps) return Status::ok();
  LOCKSTEP_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t count, close_pieces(database, chain, newest + 1, alive));
  if (count == 0) return database.execute("ROLLBACK");
  LOCKSTEP_RETURN_IF_ERROR(chain.advance());
  return database.execute("COMMIT");
}

Result<std::unique_ptr<JournalChain>> open_chain(Database& database, const std::string& path,
                                                 JournalCheck check, const AliveFn& alive = {}) {
  auto chain = JournalChain::open(database);
  if (!chain.is_ok()) return chain.status().with_context(path);
  const Status whole = (*chain)->check(check, alive);
  if (!whole.is_ok()) return whole.with_context(path);
  return chain;
}

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal(const std::string& path,
                                                     SqliteJournalOptions options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto database, Database::open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, read_version(*database, path));
  LOCKSTEP_RETURN_IF_ERROR(create_if_empty(*database, version));
  if (options.max_pages != 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        database->execute("PRAGMA max_page_count=" + std::to_string(options.max_pages)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto chain, open_chain(*database, path, options.check, options.alive));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string upgraded, upgrade_journal(*database, version, path));
  if (!upgraded.empty() && options.on_upgrade) options.on_upgrade(upgraded);
  LOCKSTEP_RETURN_IF_ERROR(chain->watch());
  LOCKSTEP_RETURN_IF_ERROR(close_old_pieces(*database, *chain, options.alive));
  LOCKSTEP_ASSIGN_OR_RETURN(auto writer, JournalWriter::create(*database));
  return std::unique_ptr<Journal>(std::make_unique<SqliteJournal>(
      path, std::move(database), std::move(chain), std::move(writer), options.has_head));
}

Result<JournalContents> peek_journal(const std::string& path, JournalCheck check,
                                     const AliveFn& alive) {
  JournalContents nothing;
  nothing.head = read_head(head_path(path));
  auto database = Database::open_for_reading(path);
  if (database.status().code() == Code::kNoInput) return nothing;
  if (!database.is_ok()) return database.status();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, read_version(**database, path));
  if (version == 0) return nothing;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto chain, open_chain(**database, path, check, alive));
  LOCKSTEP_ASSIGN_OR_RETURN(JournalContents contents, read_contents(**database));
  contents.mark = chain->mark();
  contents.head = nothing.head;
  contents.first_term = first_term(path);
  return contents;
}

Result<std::unique_ptr<Journal>> read_sqlite_journal(const std::string& path, JournalCheck check) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto database, Database::open_for_reading(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, read_version(*database, path));
  if (version == 0) return Status(Code::kUsage, "nothing was ever written to the journal " + path);
  LOCKSTEP_ASSIGN_OR_RETURN(auto chain, open_chain(*database, path, check));
  return std::unique_ptr<Journal>(std::make_unique<SqliteJournal>(
      path, std::move(database), std::move(chain), std::nullopt, false));
}

}  // namespace lockstep::coordinator
