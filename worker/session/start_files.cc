#include "worker/session/start_files.h"

#include <google/protobuf/util/message_differencer.h>

#include "comm/run/directory/run_files.h"

namespace lockstep {

Result<wire::JobSpec> read_job(const std::string& run_dir) {
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec job, read_job_spec(run_dir));
  if (job.train().slots() == 0) job.mutable_train()->set_slots(job.cluster().workers());
  return job;
}

Status check_same_job(const wire::JobSpec& ours, const wire::JobSpec& coordinators) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(ours, coordinators)) return Status::ok();
  return Status(
      Code::kUsage,
      "job.pb in the run directory is not the job that the coordinator runs: " + differences);
}

}  // namespace lockstep
