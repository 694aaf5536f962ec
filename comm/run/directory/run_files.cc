#include "comm/run/directory/run_files.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "comm/base/crc32c.h"
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/trust.h"

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

// A CRC-32C of the message, as a field of a number that no message has: protobuf's tools still read
// the file. Without it a flipped bit may be another value.
constexpr std::string_view kSealTag = "\xc5\x3e";  // field 1000, four bytes
constexpr size_t kSealBytes = kSealTag.size() + sizeof(uint32_t);

std::string seal_of(std::string_view message) {
  std::string seal(kSealTag);
  const uint32_t crc = crc32c(message);
  for (int shift = 0; shift < 32; shift += 8) seal += static_cast<char>(crc >> shift & 0xff);
  return seal;
}

template <typename Message>
Result<Message> read_message(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, read_bytes(path));
  if (bytes.size() < kSealBytes) return damaged(path);
  const std::string_view content = std::string_view(bytes).substr(0, bytes.size() - kSealBytes);
  Message message;
  if (bytes.substr(content.size()) != seal_of(content) ||
      !message.ParseFromArray(content.data(), static_cast<int>(content.size())))
    return damaged(path);
  return message;
}

template <typename Message>
Status write_message(const std::string& path, const Message& message) {
  const std::string content = message.SerializeAsString();
  return replace_file(path, content + seal_of(content));
}

}  // namespace

Result<wire::JobSpec> read_job_spec(const std::string& run_dir) {
  LOCKSTEP_RETURN_IF_ERROR(check_trusted_run_dir(run_dir));
  return job_spec_to_show(run_dir);
}

Result<wire::JobSpec> job_spec_to_show(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kJob);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec job, read_message<wire::JobSpec>(path));
  if (!job.has_train()) return damaged(path);  // cut off, or empty
  return job;
}

Status write_job_spec(const std::string& run_dir, const wire::JobSpec& job) {
  return write_message(rundir::file_in(run_dir, rundir::kJob), job);
}

Result<wire::DataFacts> read_data_facts(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kFacts);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::DataFacts facts, read_message<wire::DataFacts>(path));
  if (facts.train_samples() == 0 && !facts.open()) return damaged(path);  // cut off, or empty
  return facts;
}

Status write_data_facts(const std::string& run_dir, const wire::DataFacts& facts) {
  return write_message(rundir::file_in(run_dir, rundir::kFacts), facts);
}

Result<RunInputs> read_run_inputs(const std::string& run_dir) {
  LOCKSTEP_RETURN_IF_ERROR(check_trusted_run_dir(run_dir));
  return run_inputs_to_show(run_dir);
}

Result<RunInputs> run_inputs_to_show(const std::string& run_dir) {
  RunInputs inputs;
  LOCKSTEP_ASSIGN_OR_RETURN(inputs.job, job_spec_to_show(run_dir));
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
