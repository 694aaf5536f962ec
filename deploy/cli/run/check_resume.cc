#include "deploy/cli/run/check_resume.h"

#include "comm/base/log.h"
#include "comm/run/directory/run_files.h"
#include "coordinator/term/begin.h"
#include "coordinator/term/rebuild.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {

Result<ResumeCheck> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                                 const wire::DataFacts& facts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take(journal_path(run_dir)));
  const auto logger = null_logger();
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_complete,
                            coordinator::check_resume(run_dir, job, facts, *logger));
  if (!is_complete) return ResumeCheck{};
  const auto summary = read_summary(run_dir);
  if (!summary.is_ok()) return ResumeCheck{};
  const auto says = [&summary](const char* key, uint64_t value) {
    const auto it = summary->find(key);
    return it != summary->end() && it->is_number_unsigned() && it->get<uint64_t>() == value;
  };
  const uint64_t steps = coordinator::make_options(job, facts, run_dir).total_steps;
  const bool may_end_early = job.train().patience() > 0;
  return ResumeCheck{says("exit_code", 0) && (may_end_early || says("steps", steps))};
}

Result<coordinator::WayBack> go_back_to_best(const std::string& run_dir, const wire::JobSpec& job) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take(journal_path(run_dir)));
  return coordinator::go_back_to_best(run_dir, job);
}

Status rebuild_from(const std::string& run_dir, const std::string& checkpoint,
                    const wire::JobSpec& job, const wire::DataFacts& facts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock, RunLock::take(journal_path(run_dir)));
  return coordinator::rebuild_journal(run_dir, checkpoint, job, facts);
}

Result<wire::JobSpec> stored_job(const std::string& run_dir) {
  auto job = read_job_spec(run_dir);
  const Code code = job.status().code();
  if (code != Code::kNoInput && code != Code::kBadData) return job;
  const auto lock = RunLock::take_to_read(journal_path(run_dir));
  if (!lock.is_ok()) return job;
  auto journaled = coordinator::journaled_job(run_dir);
  return journaled.is_ok() ? journaled : job;
}

}  // namespace lockstep
