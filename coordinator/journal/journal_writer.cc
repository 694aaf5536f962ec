#include "coordinator/journal/journal_writer.h"

#include <utility>

#include "coordinator/journal/journal_fold.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/journal/step_piece.h"

namespace lockstep::coordinator {
namespace {

static_assert(kPieceSteps == 10'000);  // stands in a statement

constexpr std::pair<const char*, const char*> kStatements[] = {
    {"identity", "INSERT OR REPLACE INTO identity VALUES(?,?)"},
    {"term", "INSERT INTO terms VALUES(?,?,?,?,?)"},
    {"member", "INSERT INTO members VALUES(?,?,?,?,?,?)"},
    {"generation",
     "INSERT INTO generations VALUES(?,?,?,?,?,?) ON CONFLICT(generation) DO UPDATE SET "
     "term=excluded.term, state=excluded.state, changed_wall_ms=excluded.changed_wall_ms, "
     "start=CASE WHEN length(excluded.start)=0 THEN start ELSE excluded.start END"},
    {"slot", "INSERT INTO slot_maps VALUES(?,?,?,?,?)"},
    {"ledger", "INSERT OR REPLACE INTO ledger VALUES(?,?,?,?,?,?,?)"},
    {"batch", "INSERT INTO record_batches VALUES(?,?,?,?,?,?)"},
    {"step", "INSERT OR REPLACE INTO steps VALUES(?,?,?,?,?,?,?,?,?,?)"},
    {"step_report", "INSERT OR REPLACE INTO step_reports VALUES(?,?,?)"},
    {"eval", "INSERT OR REPLACE INTO evals VALUES(?,?,?,?,?,?,0)"},
    {"eval_report", "INSERT OR REPLACE INTO eval_reports VALUES(?,?,?)"},
    {"checkpoint", "INSERT OR REPLACE INTO checkpoints VALUES(?,?,?,?,?,?,?,?,?)"},
    {"rollback", "INSERT INTO rollbacks VALUES(NULL,?,?,?,?,?)"},
    {"rollback_checkpoints", "UPDATE checkpoints SET state=2 WHERE state=0 AND step>?"},
    {"check", "INSERT OR REPLACE INTO checks VALUES(?,?,?,?,?,0,?)"},
    {"rollback_checks", "UPDATE checks SET rolled_back=1 WHERE step>?"},
    {"rollback_evals", "UPDATE evals SET rolled_back=1 WHERE step>?"},
    {"witness", "INSERT OR REPLACE INTO witnesses VALUES(?,?,?,?,?,?)"},
    {"skip", "INSERT OR REPLACE INTO skips VALUES(?,?,?,?,?)"},
    {"unskip", "DELETE FROM skips WHERE step=? AND slot_begin=? AND slot_end=?"},
    {"fold", "INSERT INTO folds VALUES(?,?,?,?,?)"},
    {"setting", "INSERT OR REPLACE INTO settings VALUES(?,?)"},
    {"event", "INSERT INTO events VALUES(NULL,?,?,?,?)"},
    {"event_limit", "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?"},
    // The pieces that have steps from the given one on.
    {"open_pieces", "DELETE FROM step_pieces WHERE first_step > ? - 10000"},
    {"committed", "UPDATE terms SET last_wall_ms=? WHERE term=(SELECT max(term) FROM terms)"},
};

std::string with_commas(const std::vector<MemberId>& members) {
  std::string text;
  for (MemberId member : members) text += (text.empty() ? "" : ",") + std::to_string(member);
  return text;
}

}  // namespace

struct JournalWriter::Visitor {
  JournalWriter& writer;
  uint64_t wall_ms;

  Statement& statement(const char* name) const { return *writer.statements_.at(name); }

  Status operator()(const IdentityEntry& e) const {
    return statement("identity").bind(e.key).bind(e.value).run();
  }
  Status operator()(const TermEntry& e) const {
    return statement("term")
        .bind(e.term)
        .bind(wall_ms)
        .bind(wall_ms)
        .bind(uint64_t{e.pid})
        .bind(e.job_json)
        .run();
  }
  Status operator()(const MemberEntry& e) const {
    return statement("member")
        .bind(e.member)
        .bind(e.term)
        .bind(e.node)
        .bind(uint64_t{e.local_rank})
        .bind(uint64_t{e.pid})
        .bind(wall_ms)
        .run();
  }
  Status operator()(const GenerationEntry& e) const {
    const std::string members = with_commas(e.members);
    return statement("generation")
        .bind(e.generation)
        .bind(e.term)
        .bind(static_cast<uint64_t>(e.state))
        .bind(members)
        .bind(wall_ms)
        .bind_blob(e.start)
        .run();
  }
  Status operator()(const SlotMapEntry& e) const {
    for (size_t rank = 0; rank < e.runs.size(); ++rank) {
      LOCKSTEP_RETURN_IF_ERROR(statement("slot")
                                   .bind(e.generation)
                                   .bind(uint64_t{rank})
                                   .bind(e.members[rank])
                                   .bind(uint64_t{e.runs[rank].begin})
                                   .bind(uint64_t{e.runs[rank].end})
                                   .run());
    }
    return Status::ok();
  }
  Status operator()(const LedgerEntry& e) const {
    Statement& s = statement("ledger");
    s.bind(e.row.generation).bind(e.row.first.step).bind(static_cast<uint64_t>(e.row.first.phase));
    if (e.row.last) {
      s.bind(e.row.last->step).bind(static_cast<uint64_t>(e.row.last->phase));
    } else {
      s.bind_null().bind_null();
    }
    return s.bind(uint64_t{e.row.rolled_back}).bind(e.row.reason).run();
  }
  Status operator()(const RecordsEntry& e) const {
    wire::StepRecords records;
    records.set_batch(e.batch);
    for (const wire::StepRecord& record : e.records) *records.add_records() = record;
    const std::string bytes = records.SerializeAsString();
    const Step first = e.records.empty() ? 1 : e.records.front().step();
    const Step last = e.records.empty() ? 0 : e.records.back().step();
    return statement("batch")
        .bind(e.generation)
        .bind(e.member)
        .bind(e.batch)
        .bind(first)
        .bind(last)
        .bind_blob(bytes)
        .run();
  }
  Status operator()(const StepEntry& e) const {
    LOCKSTEP_RETURN_IF_ERROR(statement("open_pieces").bind(e.step).run());
    if (e.no_accuracy || !e.metrics.empty()) {
      wire::StepRecord report;
      report.set_no_accuracy(e.no_accuracy);
      put_metrics(e.metrics, report.mutable_metrics());
      const std::string bytes = report.SerializeAsString();
      LOCKSTEP_RETURN_IF_ERROR(
          statement("step_report").bind(e.step).bind(e.generation).bind_blob(bytes).run());
    }
    return statement("step")
        .bind(e.step)
        .bind(e.generation)
        .bind(uint64_t{e.epoch})
        .bind(e.samples)
        .bind(e.correct)
        .bind(e.loss)
        .bind(e.lr)
        .bind(uint64_t{e.skipped})
        .bind(e.common_hash)
        .bind(e.wall_us)
        .run();
  }
  Status operator()(const EvalEntry& e) const {
    wire::EvalReport report;
    report.set_has_top5(e.top5.has_value());
    report.set_top5(e.top5.value_or(0));
    report.set_lr(e.lr.value_or(0));
    report.set_no_accuracy(e.no_accuracy);
    put_metrics(e.metrics, report.mutable_metrics());
    const std::string bytes = report.SerializeAsString();
    LOCKSTEP_RETURN_IF_ERROR(statement("eval")
                                 .bind(e.step)
                                 .bind(e.generation)
                                 .bind(uint64_t{e.epoch})
                                 .bind(e.samples)
                                 .bind(e.correct)
                                 .bind(e.loss)
                                 .run());
    return statement("eval_report").bind(e.step).bind(e.generation).bind_blob(bytes).run();
  }
  Status operator()(const CheckpointEntry& e) const {
    return statement("checkpoint")
        .bind(e.name)
        .bind(e.step)
        .bind(e.generation)
        .bind(e.member)
        .bind(e.manifest_sha256)
        .bind(e.weights_sha256)
        .bind(e.bytes)
        .bind(uint64_t{e.final})
        .bind(static_cast<uint64_t>(e.state))
        .run();
  }
  Status operator()(const RollbackEntry& e) const {
    LOCKSTEP_RETURN_IF_ERROR(statement("open_pieces").bind(e.to.step).run());
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<LedgerRow> rows, read_ledger(*writer.database_));
    for (const LedgerRow& row : cut_ledger(rows, e.to)) {
      LOCKSTEP_RETURN_IF_ERROR((*this)(LedgerEntry{row}));
    }
    LOCKSTEP_RETURN_IF_ERROR(statement("rollback_checkpoints").bind(e.to.step).run());
    LOCKSTEP_RETURN_IF_ERROR(statement("rollback_evals").bind(e.to.step).run());
    LOCKSTEP_RETURN_IF_ERROR(statement("rollback_checks").bind(e.to.step).run());
    return statement("rollback")
        .bind(wall_ms)
        .bind(e.to.step)
        .bind(static_cast<uint64_t>(e.to.phase))
        .bind(e.checkpoint)
        .bind(e.reason)
        .run();
  }
  Status operator()(const CheckEntry& e) const {
    return statement("check")
        .bind(e.step)
        .bind(e.generation)
        .bind(e.node)
        .bind(uint64_t{e.local_rank})
        .bind(uint64_t{e.agreed})
        .bind(uint64_t{e.goes_on})
        .run();
  }
  Status operator()(const WitnessEntry& e) const {
    return statement("witness")
        .bind(e.step)
        .bind(e.generation)
        .bind(static_cast<uint64_t>(e.subject))
        .bind(e.node)
        .bind(uint64_t{e.local_rank})
        .bind(e.hash)
        .run();
  }
  Status operator()(const SkipEntry& e) const {
    return statement("skip")
        .bind(e.step)
        .bind(uint64_t{e.slots.begin})
        .bind(uint64_t{e.slots.end})
        .bind(e.generation)
        .bind(e.reason)
        .run();
  }
  Status operator()(const UnskipEntry& e) const {
    return statement("unskip")
        .bind(e.step)
        .bind(uint64_t{e.slots.begin})
        .bind(uint64_t{e.slots.end})
        .run();
  }
  Status operator()(const FoldEntry& e) const {
    LOCKSTEP_RETURN_IF_ERROR(fold_batches(*writer.database_, e));
    return statement("fold")
        .bind(e.generation)
        .bind(e.first)
        .bind(e.last)
        .bind(e.samples)
        .bind(e.digest)
        .run();
  }
  Status operator()(const SettingEntry& e) const {
    return statement("setting").bind(e.key).bind(e.value).run();
  }
  Status operator()(const EventEntry& e) const {
    LOCKSTEP_RETURN_IF_ERROR(
        statement("event").bind(wall_ms).bind(e.generation).bind(e.kind).bind(e.text).run());
    return statement("event_limit").bind(kJournalEvents).run();
  }
};

Result<JournalWriter> JournalWriter::create(Database& database) {
  JournalWriter writer(database);
  for (const auto& [name, sql] : kStatements) {
    LOCKSTEP_ASSIGN_OR_RETURN(writer.statements_[name], database.prepare(sql));
  }
  return writer;
}

Status JournalWriter::write(const JournalEntry& entry, BothClocks now) {
  if (std::holds_alternative<TermEntry>(entry)) term_began_ = now;
  return std::visit(Visitor{*this, static_cast<uint64_t>(now.wall_ms)}, entry);
}

Status JournalWriter::end(BothClocks now) {
  if (!term_began_) return Status::ok();  // the term that is there was another process's
  const int64_t lasted_ms = now.monotonic_ms - term_began_->monotonic_ms;
  const auto last_ms = static_cast<uint64_t>(term_began_->wall_ms + lasted_ms);
  return statements_.at("committed")->bind(last_ms).run();
}

}  // namespace lockstep::coordinator
