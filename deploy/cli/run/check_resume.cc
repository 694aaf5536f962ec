#include "deploy/cli/run/check_resume.h"

#include "comm/base/log.h"
#include "coordinator/term/begin.h"
#include "deploy/cli/watch/run_summary.h"

namespace lockstep {

Result<ResumeCheck> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                                 const wire::DataFacts& facts) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto lock,
                            coordinator::RunLock::take(coordinator::journal_path(run_dir)));
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
  return ResumeCheck{says("exit_code", 0) && says("steps", steps)};
}

}  // namespace lockstep
