#include "deploy/cli/export/measure_export.h"

#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/shallow_json.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int kMostDepth = 4;

Result<Json> ask_worker(const MeasureRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string program, worker_program(sibling_program("")));
  ProcessSpec spec;
  spec.argv = {program, "measure", "--run-dir", request.run_dir, "--file", request.file};
  for (const std::string& checkpoint : request.checkpoints)
    spec.argv.insert(spec.argv.end(), {"--checkpoint", checkpoint});
  if (!request.exported.empty()) spec.argv.insert(spec.argv.end(), {"--export", request.exported});
  spec.parent_death_signal = SIGKILL;
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  const ProcessEnd end = wait_for_end(pid);
  if (!end.is_success()) return Status(Code::kInternal, "lockstep-worker " + end.text());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(request.file, limits::kJobFileBytes));
  std::error_code ignored;
  std::filesystem::remove(request.file, ignored);
  Json answer = parse_shallow_json(text, kMostDepth);
  if (!answer.is_object()) return Status(Code::kInternal, "lockstep-worker gave no figures");
  return answer;
}

uint64_t whole_number(const Json& answer, const char* key) {
  const Json value = answer.value(key, Json());
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

double number_in(const Json& row, const char* key) {
  const Json value = row.value(key, Json());
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

Measurement measure_export(const MeasureRequest& request, std::vector<MeasuredModel> models) {
  Measurement out;
  out.models = std::move(models);
  const auto answer = ask_worker(request);
  if (!answer.is_ok() || answer->contains("error")) {
    out.why_not =
        answer.is_ok() ? answer->value("error", Json()).dump() : answer.status().message();
    if (answer.is_ok() && (*answer)["error"].is_string())
      out.why_not = (*answer)["error"].get<std::string>();
    return out;
  }
  const Json rows = answer->value("models", Json());
  if (!rows.is_array() || rows.size() != out.models.size()) {
    out.why_not = "lockstep-worker is of another version than lockstep";
    return out;
  }
  out.samples = whole_number(*answer, "samples");
  out.of = whole_number(*answer, "of");
  out.batch = whole_number(*answer, "batch");
  out.threads = whole_number(*answer, "threads");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_object()) continue;
    if (!rows[i].contains("loss")) out.why_not = "no sample of the evaluation data has a label";
    out.models[i].loss = number_in(rows[i], "loss");
    out.models[i].accuracy = number_in(rows[i], "accuracy");
    out.models[i].samples_per_second = number_in(rows[i], "samples_per_second");
  }
  return out;
}

}  // namespace lockstep
