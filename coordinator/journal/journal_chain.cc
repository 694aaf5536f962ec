#include "coordinator/journal/journal_chain.h"

#include <sqlite3.h>

#include <bit>

#include "comm/base/hash.h"
#include "comm/base/prng.h"
#include "coordinator/journal/journal_pieces.h"

namespace lockstep::coordinator {
namespace {

// row_hash(sign, table, column...) adds the hash of a row to the sum, or subtracts it.
constexpr char kFunction[] = "lockstep_row";
constexpr size_t kIdBytes = 16;

void append_number(std::string& text, uint64_t value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// With its type and length, so that no two rows have the same text.
void append_value(std::string& text, sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  text += static_cast<char>(type);
  switch (type) {
    case SQLITE_INTEGER:
      return append_number(text, static_cast<uint64_t>(sqlite3_value_int64(value)));
    case SQLITE_FLOAT:
      return append_number(text, std::bit_cast<uint64_t>(sqlite3_value_double(value)));
    case SQLITE_NULL:
      return;
    default: {
      const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
      const auto size = static_cast<size_t>(sqlite3_value_bytes(value));
      append_number(text, size);
      if (size > 0) text.append(bytes, size);
    }
  }
}

void add_row(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string text;
  for (int i = 1; i < count; ++i) append_value(text, values[i]);
  const uint64_t hash = xxh3_64(text);
  auto& sum = *static_cast<uint64_t*>(sqlite3_user_data(context));
  sum += sqlite3_value_int(values[0]) > 0 ? hash : -hash;
  sqlite3_result_null(context);
}

std::string call(const char* sign, const std::string& table, const char* prefix,
                 const std::vector<std::string>& columns) {
  std::string sql = std::string("SELECT ") + kFunction + "(" + sign + ",'" + table + "'";
  for (const std::string& column : columns) sql += std::string(",") + prefix + "\"" + column + "\"";
  return sql + ")";
}

// Their rows in closed pieces are summed in the pieces.
bool has_closed_rows(const std::string& table) {
  return table == "steps" || table == "step_reports";
}

Status damaged(const std::string& what) {
  return {Code::kBadData, "the journal is damaged: " + what};
}

}  // namespace

Status JournalChain::create(Database& database) {
  const std::string random = random_bytes(kIdBytes);
  const std::string id = to_hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()});
  return database.execute("INSERT INTO chain VALUES(1, '" + id + "', 0, 0, 0)");
}

Result<std::unique_ptr<JournalChain>> JournalChain::open(Database& database) {
  std::unique_ptr<JournalChain> chain(new JournalChain(database));
  {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto row, database.prepare("SELECT lineage, sequence, content, "
                                                               "digest FROM chain WHERE id = 1"));
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, row->step());
    if (!has_row) return damaged("it has no lineage id");
    chain->mark_.lineage_id = row->text(0);
    chain->mark_.sequence = row->integer(1);
    chain->content_ = row->integer(2);
    chain->mark_.digest = row->integer(3);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(chain->mark_.term,
                            database.integer("SELECT coalesce(max(term), 0) FROM terms"));
  constexpr int kAnyCount = -1;
  if (sqlite3_create_function(database.handle(), kFunction, kAnyCount, SQLITE_UTF8, &chain->sum_,
                              add_row, nullptr, nullptr) != SQLITE_OK) {
    return Status(Code::kInternal, "SQLite does not take a function");
  }
  return chain;
}

JournalChain::~JournalChain() {
  sqlite3_create_function(database_.handle(), kFunction, -1, SQLITE_UTF8, nullptr, nullptr, nullptr,
                          nullptr);
}

Result<std::vector<JournalChain::Table>> JournalChain::tables() {
  std::vector<Table> found;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto names,
      database_.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'chain' "
                        "AND name NOT LIKE 'sqlite_%' ORDER BY name"));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_table, names->step());
    if (!has_table) return found;
    Table& table = found.emplace_back(Table{names->text(0), {}});
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto columns,
        database_.prepare("SELECT name FROM pragma_table_info('" + table.name + "') ORDER BY cid"));
    while (true) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool has_column, columns->step());
      if (!has_column) break;
      table.columns.push_back(columns->text(0));
    }
  }
}

Status JournalChain::sum_rows(const Table& table, const std::string& where, const AliveFn& alive) {
  constexpr uint64_t kRowsPerSign = 100'000;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto rows, database_.prepare(call("1", table.name, "", table.columns) + " FROM \"" +
                                         table.name + "\"" + where));
  for (uint64_t row = 0;; ++row) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, rows->step());
    if (!has_row) return Status::ok();
    if (alive && row % kRowsPerSign == 0) alive();
  }
}

// Runs SQLite's own check of its pages. Skips tables with closed rows: a start reads only the pages
// there that lead to the open rows, and the sums tell whether they led there.
Status JournalChain::check_pages(const std::vector<Table>& tables, Step closed) {
  const auto check = [this](const std::string& what) -> Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto whole,
                              database_.prepare("PRAGMA integrity_check(" + what + ")"));
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, whole->step());
    if (has_row && whole->text(0) == "ok") return Status::ok();
    return damaged(has_row ? whole->text(0) : "no answer");
  };
  if (closed == 0) return check("1");
  for (const Table& table : tables)
    if (!has_closed_rows(table.name)) LOCKSTEP_RETURN_IF_ERROR(check("'" + table.name + "'"));
  return Status::ok();
}

Status JournalChain::check(JournalCheck what, const AliveFn& alive) {
  if (what == JournalCheck::kNone) return Status::ok();
  Step closed = 0;
  if (what == JournalCheck::kOpenPart) {
    LOCKSTEP_ASSIGN_OR_RETURN(closed, closed_steps(database_));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto all, tables());
  LOCKSTEP_RETURN_IF_ERROR(check_pages(all, closed));
  sum_ = 0;
  if (closed > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StepPiece> pieces, read_pieces(database_));
    for (const StepPiece& piece : pieces) sum_ += piece.content;
  }
  const std::string open = " WHERE step >= " + std::to_string(closed);
  for (const Table& table : all)
    LOCKSTEP_RETURN_IF_ERROR(sum_rows(table, has_closed_rows(table.name) ? open : "", alive));
  is_whole_ = what == JournalCheck::kWhole || closed == 0;
  if (sum_ == content_) return Status::ok();
  return damaged("its rows do not have the checksum of commit " + std::to_string(mark_.sequence));
}

Result<uint64_t> JournalChain::sum_steps(Step first, Step last) {
  const uint64_t before = sum_;
  const std::string where =
      " WHERE step >= " + std::to_string(first) + " AND step < " + std::to_string(last);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto all, tables());
  Status status;
  for (const Table& table : all)
    if (status.is_ok() && has_closed_rows(table.name)) status = sum_rows(table, where, {});
  const uint64_t sum = sum_ - before;
  sum_ = before;
  if (!status.is_ok()) return status;
  return sum;
}

Status JournalChain::check_steps(Step from, Step to) {
  if (is_whole_) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const Step closed, closed_steps(database_));
  if (from >= closed) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<StepPiece> pieces, read_pieces(database_));
  for (const StepPiece& piece : pieces) {
    if (piece.last <= from || piece.first >= to || checked_.contains(piece.first)) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t sum, sum_steps(piece.first, piece.last));
    if (sum != piece.content)
      return damaged("the rows of steps " + std::to_string(piece.first + 1) + " to " +
                     std::to_string(piece.last) + " do not have the checksum of their summary");
    checked_.insert(piece.first);
  }
  return Status::ok();
}

Status JournalChain::watch() {
  // REPLACE deletes rows, and its triggers fire only then.
  LOCKSTEP_RETURN_IF_ERROR(
      database_.execute("PRAGMA temp_store=MEMORY; PRAGMA recursive_triggers=ON"));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto all, tables());
  for (const Table& table : all) {
    const std::string plus = call("1", table.name, "NEW.", table.columns) + ";";
    const std::string minus = call("-1", table.name, "OLD.", table.columns) + ";";
    const auto trigger = [&](const std::string& event, const std::string& body) {
      return "CREATE TEMP TRIGGER \"" + table.name + "_" + event + "\" AFTER " + event +
             " ON main.\"" + table.name + "\" BEGIN " + body + " END;";
    };
    LOCKSTEP_RETURN_IF_ERROR(database_.execute(trigger("INSERT", plus) + trigger("DELETE", minus) +
                                               trigger("UPDATE", minus + plus)));
  }
  sum_ = content_;
  return Status::ok();
}

Status JournalChain::advance() {
  ++mark_.sequence;
  mark_.digest = stream_key({mark_.digest, mark_.sequence, sum_});
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto update,
      database_.prepare("UPDATE chain SET sequence = ?, content = ?, digest = ? WHERE id = 1"));
  return update->bind(mark_.sequence).bind(sum_).bind(mark_.digest).run();
}

}  // namespace lockstep::coordinator
