#include "worker/session/start_files.h"

#include <google/protobuf/util/message_differencer.h>

#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {

Result<wire::JobSpec> read_job(const std::string& run_dir) {
  const std::string path = run_dir + "/job.pb";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, limits::kJobFileBytes));
  wire::JobSpec job;
  if (!job.ParseFromString(bytes) || !job.has_train())
    return Status(Code::kBadData, path + " is damaged; start the run with `lockstep run` again");
  if (job.train().slots() == 0) job.mutable_train()->set_slots(job.cluster().workers());
  return job;
}

Result<CoordinatorAddress> read_coordinator_address(const std::string& run_dir) {
  const std::string path = run_dir + "/coordinator.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kJobFileBytes));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : std::string();
  };
  auto control = rpc::parse_address(text_of("control"));
  if (!control.is_ok()) return Status(Code::kBadData, path + " names no control address");
  return CoordinatorAddress{text_of("run_id"), std::move(control).value()};
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
