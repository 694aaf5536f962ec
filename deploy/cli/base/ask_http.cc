#include "deploy/cli/base/ask_http.h"

#include "comm/http/http_options.h"
#include "comm/rundir/run_files.h"

namespace lockstep {

Result<http::GetResult> ask_http(const std::string& run_dir, const std::string& path,
                                 int64_t timeout_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(run_dir));
  http::Access access;
  if (!rpc::is_loopback_host(file.http.host)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, read_job_spec(run_dir));
    LOCKSTEP_ASSIGN_OR_RETURN(access, http::http_access(job, run_dir));
  }
  return http::http_get(file.http, path, timeout_ms, access);
}

}  // namespace lockstep
