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
  if (version == 0 || version >= kJournalVersion) return std::string();
  const bool lacks_evals = version < 5;
  LOCKSTEP_RETURN_IF_ERROR(database.execute(
      "BEGIN IMMEDIATE;" + std::string(lacks_evals ? kEvalReportsTable : "") + kStepReportsTable +
      "PRAGMA user_version=" + std::to_string(kJournalVersion) + ";COMMIT"));
  return "the journal " + path + " has version " + std::to_string(version) +
         " and gets what it lacks of version " + std::to_string(kJournalVersion) + ": " +
         (lacks_evals ? "a table for top-5 accuracy and learning rate of evaluations, and " : "") +
         "a table for metrics of steps. Older versions of lockstep cannot read it any more";
}

Result<bool> has_eval_reports(Database& database) {
  return has_table(database, "eval_reports");
}

Result<bool> has_step_reports(Database& database) {
  return has_table(database, "step_reports");
}

}  // namespace lockstep::coordinator
