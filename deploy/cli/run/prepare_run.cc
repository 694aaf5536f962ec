#include "deploy/cli/run/prepare_run.h"

#include <filesystem>

#include "comm/base/file.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/pulse.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/data_legend.h"
#include "comm/tls/run_token.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/job/job_print.h"
#include "deploy/cli/run/same_run.h"

namespace lockstep {
namespace {

void remove_file(const RunDir& dir, const char* name) {
  std::error_code ignored;
  std::filesystem::remove(dir.file(name), ignored);
}

// Comes out of the middle of reading data, where only an exception can.
struct StoppedEarly {};

Result<PreparedData> read_data(const RunDir& dir, const wire::JobSpec& job,
                               const StopSignals& signals,
                               const std::function<void(const std::string&)>& progress) {
  const auto stoppable = [&](const std::string& text) {
    progress(text);
    if (signals.is_pending()) throw StoppedEarly();
  };
  const Status stopped(Code::kCheckpointed, "stopped before the run began; nothing was changed");
  try {
    auto data = prepare_data(job, dir.path(), stoppable);
    if (data.is_ok() && signals.is_pending()) return stopped;
    return data;
  } catch (const StoppedEarly&) {
    return stopped;
  }
}

}  // namespace

Result<PreparedData> prepare_run(const RunDir& dir, const wire::JobSpec& job, bool resume,
                                 const StopSignals& signals,
                                 const std::function<void(const std::string&)>& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(PreparedData data, read_data(dir, job, signals, progress));
  if (!resume) return data;
  const auto stored = read_data_facts(dir.path());
  const Code code = stored.status().code();  // the journal knows the data, too (check_resume())
  if (code == Code::kNoInput || code == Code::kBadData) return data;
  LOCKSTEP_RETURN_IF_ERROR(stored.status());
  if (data.facts.open()) {  // the script has said them, or says them yet
    data.facts = *stored;
    if (!stored->open() && data.description.empty())
      data.description = grouped(stored->train_samples()) + " samples";
    return data;
  }
  LOCKSTEP_RETURN_IF_ERROR(check_same_data(*stored, data.facts));
  *data.facts.mutable_legend() = merge_legends(stored->legend(), data.facts.legend());
  return data;
}

void remove_endpoints(const RunDir& dir) {
  remove_file(dir, rundir::kCoordinator);
  remove_file(dir, rundir::kPulse);
}

std::string job_text(const wire::JobSpec& job, const wire::DataFacts& facts) {
  return job_yaml(job) + legend_comment(facts.legend());
}

Status write_run_files(const RunDir& dir, const wire::JobSpec& job, const wire::DataFacts& facts) {
  remove_endpoints(dir);
  remove_file(dir, rundir::kSummary);
  LOCKSTEP_RETURN_IF_ERROR(rpc::create_run_token(dir.file(rundir::kToken)).status());
  // It stays over a resume: a scraper has its own copy.
  if (!rpc::read_token_file(dir.file(rundir::kHttpToken)).is_ok())
    LOCKSTEP_RETURN_IF_ERROR(rpc::create_token_file(dir.file(rundir::kHttpToken)).status());
  LOCKSTEP_RETURN_IF_ERROR(replace_file(dir.file(rundir::kJobText), job_text(job, facts)));
  LOCKSTEP_RETURN_IF_ERROR(write_data_facts(dir.path(), facts));
  return write_job_spec(dir.path(), job);
}

}  // namespace lockstep
