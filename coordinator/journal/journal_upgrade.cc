#include "coordinator/journal/journal_upgrade.h"

#include "coordinator/journal/journal_schema.h"

namespace lockstep::coordinator {

namespace {

Result<bool> has_table(Database& database, const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const uint64_t tables,
      database.integer("SELECT count(*) FROM sqlite_schema WHERE name = '" + name + "'"));
  return tables > 0;
}

}  // namespace

Result<uint64_t> read_version(Database& database, const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t version, database.integer("PRAGMA user_version"));
  const bool is_known = version >= kOldestJournalVersion && version <= kJournalVersion;
  if (version == 0 || is_known) return version;
  return Status(Code::kUsage, "the journal " + path + " has version " + std::to_string(version) +
                                  ", this program knows " + std::to_string(kOldestJournalVersion) +
                                  " to " + std::to_string(kJournalVersion) +
                                  ": use the version of lockstep that began the run");
}

Result<std::string> upgrade_journal(Database& database, uint64_t version, const std::string& path) {
  struct Addition {
    uint64_t version;
    const char* table;
    const char* what;
  };
  constexpr Addition kAdditions[] = {
      {5, kEvalReportsTable, "a table for top-5 accuracy and learning rate of evaluations"},
      {6, kStepReportsTable, "a table for metrics of steps"},
      {7, kStepPiecesTable, "summaries of its steps for a fast start"},
  };
  if (version == 0 || version >= kJournalVersion) return std::string();
  std::string tables;
  std::string what;
  for (const Addition& addition : kAdditions) {
    if (version >= addition.version) continue;
    tables += addition.table;
    what += (what.empty() ? "" : ", ") + std::string(addition.what);
  }
  LOCKSTEP_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE;" + tables + "PRAGMA user_version=" +
                                            std::to_string(kJournalVersion) + ";COMMIT"));
  return "the journal " + path + " has version " + std::to_string(version) +
         " and gets what it lacks of version " + std::to_string(kJournalVersion) + ": " + what +
         ". Older versions of lockstep cannot read it any more";
}

Result<bool> has_eval_reports(Database& database) {
  return has_table(database, "eval_reports");
}

Result<bool> has_step_reports(Database& database) {
  return has_table(database, "step_reports");
}

Result<bool> has_step_pieces(Database& database) {
  return has_table(database, "step_pieces");
}

}  // namespace lockstep::coordinator
