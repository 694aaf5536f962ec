#include "deploy/agent/run_files.h"

#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

Status damaged(const std::string& path) {
  return Status(Code::kBadData, path +
                                    " is damaged; take another --run-dir, or resume from a copy "
                                    "of the run that is whole");
}

template <typename Message>
Result<Message> read_message(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, limits::kJobFileBytes));
  Message message;
  if (!message.ParseFromString(bytes)) return damaged(path);
  return message;
}

}  // namespace

Result<CoordinatorFile> read_coordinator_file(const std::string& run_dir) {
  const std::string path = run_dir + "/coordinator.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kJobFileBytes));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer())
    return damaged(path);
  const auto control = rpc::parse_address(text_of("control"));
  const auto http = rpc::parse_address(text_of("http"));
  if (!control.is_ok() || !http.is_ok()) return damaged(path);
  return CoordinatorFile{json["pid"].get<pid_t>(), text_of("run_id"), *control, *http};
}

Result<wire::JobSpec> read_job_spec(const std::string& run_dir) {
  return read_message<wire::JobSpec>(run_dir + "/job.pb");
}

Result<wire::DataFacts> read_data_facts(const std::string& run_dir) {
  return read_message<wire::DataFacts>(run_dir + "/facts.pb");
}

Status write_message(const std::string& path, const google::protobuf::MessageLite& message) {
  return replace_file(path, message.SerializeAsString());
}

}  // namespace lockstep
