#include "comm/rundir/run_files.h"

#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/rundir/layout.h"

namespace lockstep {
namespace {

Status damaged(const std::string& path) {
  return Status(
      Code::kBadData,
      path + " is damaged; resume from an undamaged copy of the run, or choose another --run-dir");
}

Result<std::string> read_bytes(const std::string& path) {
  auto bytes = read_file(path, limits::kJobFileBytes);
  if (bytes.status().code() == Code::kUsage) return damaged(path);  // larger than any that is whole
  return bytes;
}

template <typename Message>
Result<Message> read_message(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, read_bytes(path));
  Message message;
  if (!message.ParseFromString(bytes)) return damaged(path);
  return message;
}

}  // namespace

Result<wire::JobSpec> read_job_spec(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kJob);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec job, read_message<wire::JobSpec>(path));
  if (!job.has_train()) return damaged(path);  // cut off, or empty
  return job;
}

Status write_job_spec(const std::string& run_dir, const wire::JobSpec& job) {
  return replace_file(rundir::file_in(run_dir, rundir::kJob), job.SerializeAsString());
}

Result<wire::DataFacts> read_data_facts(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kFacts);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::DataFacts facts, read_message<wire::DataFacts>(path));
  if (facts.train_samples() == 0) return damaged(path);  // cut off, or empty
  return facts;
}

Status write_data_facts(const std::string& run_dir, const wire::DataFacts& facts) {
  return replace_file(rundir::file_in(run_dir, rundir::kFacts), facts.SerializeAsString());
}

Result<RunInputs> read_run_inputs(const std::string& run_dir) {
  RunInputs inputs;
  LOCKSTEP_ASSIGN_OR_RETURN(inputs.job, read_job_spec(run_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(inputs.facts, read_data_facts(run_dir));
  return inputs;
}

Result<CoordinatorFile> read_coordinator_file(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kCoordinator);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_bytes(path));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  const auto number_of = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
  };
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer())
    return damaged(path);
  const auto control = rpc::parse_address(text_of("control"));
  const auto http = rpc::parse_address(text_of("http"));
  if (!control.is_ok() || !http.is_ok()) return damaged(path);
  return CoordinatorFile{json["pid"].get<pid_t>(),
                         text_of("run_id"),
                         *control,
                         *http,
                         static_cast<uint64_t>(number_of("term")),
                         number_of("started")};
}

Status write_coordinator_file(const std::string& run_dir, const CoordinatorFile& file) {
  nlohmann::json json;
  json["pid"] = file.pid;
  json["run_id"] = file.run_id;
  json["term"] = file.term;
  json["control"] = rpc::to_string(file.control);
  json["http"] = rpc::to_string(file.http);
  json["started"] = file.started_wall_ms;
  return replace_file(rundir::file_in(run_dir, rundir::kCoordinator), json.dump(2) + "\n");
}

}  // namespace lockstep
