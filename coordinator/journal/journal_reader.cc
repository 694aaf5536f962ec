#include "coordinator/journal/journal_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "comm/base/limits.h"
#include "coordinator/journal/journal_upgrade.h"

namespace lockstep::coordinator {
namespace {

// Calls `take` with every row of `sql`.
template <typename Take>
Status for_each_row(Database& database, const char* sql, const Take& take) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto rows, database.prepare(sql));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool has_row, rows->step());
    if (!has_row) return Status::ok();
    take(*rows);
  }
}

std::vector<MemberId> split(const std::string& text) {
  std::vector<MemberId> members;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    MemberId member = 0;
    at = std::from_chars(at, end, member).ptr + 1;  // and the comma
    members.push_back(member);
  }
  return members;
}

Status read_membership(Database& database, JournalContents& contents) {
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database, "SELECT member, term, node, local_rank, pid FROM members ORDER BY member",
      [&](const Statement& row) {
        contents.members.push_back({row.integer(0), row.integer(1), row.text(2),
                                    static_cast<uint32_t>(row.integer(3)),
                                    static_cast<uint32_t>(row.integer(4))});
      }));
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database,
      "SELECT generation, term, state, members, CASE WHEN state IN (1, 4) THEN start ELSE x'' END "
      "FROM generations ORDER BY generation",
      [&](const Statement& row) {
        contents.generations.push_back({row.integer(0), row.integer(1),
                                        static_cast<GenerationState>(row.integer(2)),
                                        split(row.text(3)), row.text(4)});
      }));
  return for_each_row(
      database,
      "SELECT member, max(batch) FROM (SELECT member, batch FROM folded_batches UNION ALL "
      "SELECT member, max(batch) FROM record_batches GROUP BY member) GROUP BY member",
      [&](const Statement& row) { contents.batches[row.integer(0)] = row.integer(1); });
}

// `report`: lockstep.wire.EvalReport.
void take_eval_report(const std::string& report, EvalEntry* entry) {
  wire::EvalReport parsed;
  if (report.empty() || !parsed.ParseFromString(report)) return;
  if (parsed.has_top5()) entry->top5 = parsed.top5();
  entry->lr = parsed.lr();
  entry->no_accuracy = parsed.no_accuracy();
  entry->metrics = metrics_of(parsed.metrics());
}

Status read_evals(Database& database, JournalContents& contents) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_reports, has_eval_reports(database));
  const std::string report = has_reports ? "coalesce(r.report, x'')" : "x''";
  const std::string reports =
      has_reports ? "LEFT JOIN eval_reports r ON r.step = e.step AND r.generation = e.generation "
                  : "";
  const std::string sql = "SELECT e.generation, e.step, e.epoch, e.samples, e.correct, e.loss, " +
                          report + " FROM evals e " + reports +
                          "WHERE e.rolled_back = 0 ORDER BY e.step, e.generation";
  return for_each_row(database, sql.c_str(), [&](const Statement& row) {
    EvalEntry entry{row.integer(0), row.integer(1), static_cast<Epoch>(row.integer(2)),
                    row.integer(3), row.integer(4), real_or_nan(row, 5)};
    take_eval_report(row.text(6), &entry);
    contents.evals.push_back(entry);
  });
}

Status read_results(Database& database, JournalContents& contents) {
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database,
      "SELECT name, step, generation, member, manifest_sha256, weights_sha256, bytes, final, state "
      "FROM checkpoints ORDER BY step, generation",
      [&](const Statement& row) {
        contents.checkpoints.push_back(
            {row.text(0), row.integer(1), row.integer(2), row.integer(3), row.text(4), row.text(5),
             row.integer(6), row.integer(7) != 0, static_cast<CheckpointState>(row.integer(8))});
      }));
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database,
      "SELECT generation, step, agreed, node, local_rank, rolled_back, goes_on FROM checks "
      "WHERE agreed = 0 UNION ALL "
      "SELECT generation, max(step), agreed, node, local_rank, rolled_back, goes_on FROM checks "
      "WHERE agreed = 1 AND rolled_back = 0 GROUP BY generation ORDER BY 2, 1",
      [&](const Statement& row) {
        contents.checks.push_back({row.integer(0), row.integer(1), row.integer(2) != 0, row.text(3),
                                   static_cast<uint32_t>(row.integer(4)), row.integer(5) != 0,
                                   row.integer(6) != 0});
      }));
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database,
      "SELECT generation, step, subject, node, local_rank, hash FROM witnesses "
      "ORDER BY step, generation, subject, node, local_rank",
      [&](const Statement& row) {
        contents.witnesses.push_back({row.integer(0), row.integer(1),
                                      static_cast<CheckSubject>(row.integer(2)), row.text(3),
                                      static_cast<uint32_t>(row.integer(4)), row.integer(5)});
      }));
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_row(database,
                   "SELECT generation, step, slot_begin, slot_end, reason FROM skips "
                   "ORDER BY step, slot_begin, slot_end, generation",
                   [&](const Statement& row) {
                     const SlotRun slots{static_cast<uint32_t>(row.integer(2)),
                                         static_cast<uint32_t>(row.integer(3))};
                     contents.skips.push_back({row.integer(0), row.integer(1), slots, row.text(4)});
                   }));
  return read_evals(database, contents);
}

}  // namespace

void take_report(const std::string& report, StepEntry* entry) {
  wire::StepRecord parsed;
  if (report.empty() || !parsed.ParseFromString(report)) return;
  entry->no_accuracy = parsed.no_accuracy();
  entry->metrics = metrics_of(parsed.metrics());
}

double real_or_nan(const Statement& row, int column) {
  return row.is_null(column) ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

Result<JournalContents> read_contents(Database& database) {
  JournalContents contents;
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_row(database, "SELECT key, value FROM identity", [&](const Statement& row) {
        contents.identity.push_back({row.text(0), row.text(1)});
      }));
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_row(database, "SELECT key, value FROM settings WHERE value <> ''",
                   [&](const Statement& row) { contents.settings[row.text(0)] = row.text(1); }));
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database, "SELECT max(term), sum(max(0, last_wall_ms - started_wall_ms)) FROM terms",
      [&](const Statement& row) {
        contents.last_term = row.integer(0);
        contents.wall_ms = static_cast<int64_t>(row.integer(1));
      }));
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_row(database, "SELECT job FROM terms ORDER BY term DESC LIMIT 1",
                   [&](const Statement& row) { contents.job_json = row.text(0); }));
  LOCKSTEP_RETURN_IF_ERROR(read_membership(database, contents));
  if (!contents.members.empty()) contents.last_member = contents.members.back().member;
  if (!contents.generations.empty()) {
    contents.last_generation = contents.generations.back().generation;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(contents.ledger, read_ledger(database));
  LOCKSTEP_ASSIGN_OR_RETURN(contents.folds, read_folds(database));
  LOCKSTEP_RETURN_IF_ERROR(read_results(database, contents));
  return contents;
}

Result<std::vector<LedgerRow>> read_ledger(Database& database) {
  std::vector<LedgerRow> found;
  LOCKSTEP_RETURN_IF_ERROR(for_each_row(
      database,
      "SELECT generation, first_step, first_phase, last_step, last_phase, rolled_back, reason "
      "FROM ledger ORDER BY generation",
      [&](const Statement& row) {
        LedgerRow& entry = found.emplace_back();
        entry.generation = row.integer(0);
        entry.first = {row.integer(1), static_cast<Phase>(row.integer(2))};
        if (!row.is_null(3)) {
          entry.last = ResumePoint{row.integer(3), static_cast<Phase>(row.integer(4))};
        }
        entry.rolled_back = row.integer(5) != 0;
        entry.reason = row.text(6);
      }));
  return found;
}

Result<std::vector<FoldEntry>> read_folds(Database& database) {
  std::vector<FoldEntry> found;
  LOCKSTEP_RETURN_IF_ERROR(
      for_each_row(database,
                   "SELECT generation, first_step, last_step, samples, digest FROM folds "
                   "ORDER BY generation, first_step",
                   [&](const Statement& row) {
                     found.push_back({row.integer(0), row.integer(1), row.integer(2),
                                      row.integer(3), row.integer(4)});
                   }));
  return found;
}

Status visit_lineage(Database& database, Step from, Step to,
                     const std::function<void(const StepEntry&)>& visit) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_reports, has_step_reports(database));
  const std::string reports =
      has_reports ? "LEFT JOIN step_reports r ON r.step = s.step AND r.generation = s.generation "
                  : "";
  const std::string sql =
      "SELECT s.generation, s.step, s.epoch, s.samples, s.correct, s.loss, "
      "s.lr, s.skipped, s.common_hash, s.wall_us, " +
      std::string(has_reports ? "coalesce(r.report, x'')" : "x''") + " FROM steps s " + reports +
      "JOIN ledger l ON l.generation = s.generation AND l.rolled_back = 0 "
      "AND s.step >= l.first_step AND "
      "(l.last_step IS NULL OR s.step < l.last_step) "
      "WHERE s.step >= ? AND s.step < ? ORDER BY s.step";
  LOCKSTEP_ASSIGN_OR_RETURN(auto rows, database.prepare(sql));
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
    take_report(rows->text(10), &entry);
    visit(entry);
  }
}

Result<std::vector<RecordsEntry>> read_batches(Database& database, Generation generation, Step from,
                                               Step to) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto rows,
      database.prepare("SELECT member, batch, records FROM record_batches "
                       "INDEXED BY batches_by_step WHERE generation = ? AND last_step >= ? AND "
                       "last_step < ? AND first_step < ? AND first_step <= last_step "
                       "ORDER BY member, batch"));
  // No batch is longer, so that the index bounds the search on both sides.
  constexpr Step kLongest = limits::kRecordBatchSteps;
  const Step end = std::min(to, kNoStep - kLongest) + kLongest;
  rows->bind(generation).bind(from).bind(end).bind(to);
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

}  // namespace lockstep::coordinator
