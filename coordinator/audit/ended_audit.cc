#include "coordinator/audit/ended_audit.h"

#include "comm/run/directory/claim.h"
#include "comm/run/directory/run_lock.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/term/begin.h"

namespace lockstep::coordinator {

Result<AuditReport> audit_ended_run(const std::string& run_dir,
                                    const std::function<void(const AuditedStep&)>& on_step) {
  const std::string path = journal_path(run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take_to_read(path));
  LOCKSTEP_RETURN_IF_ERROR(
      check_journal(run_dir, path, /*is_alive=*/false, JournalCheck::kOpenPart));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto journal, read_sqlite_journal(path));
  return audit(*journal, on_step);
}

}  // namespace lockstep::coordinator
