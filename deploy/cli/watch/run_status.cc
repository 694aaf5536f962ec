#include "deploy/cli/watch/run_status.h"

#include <algorithm>

#include "comm/base/text/shallow_json.h"
#include "deploy/cli/base/ask_http.h"

namespace lockstep {
namespace {

using nlohmann::json;

std::optional<double> number_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

}  // namespace

RunStatus parse_status(const json& object) {
  RunStatus status;
  if (!object.is_object()) return status;
  if (const auto it = object.find("state"); it != object.end() && it->is_string())
    status.state = it->get<std::string>();
  status.step = count_in(object, "step");
  status.total_steps = count_in(object, "total_steps");
  status.epoch = count_in(object, "epoch");
  status.epochs = count_in(object, "epochs");
  status.generation = count_in(object, "generation");
  status.workers = count_in(object, "workers");
  status.global_batch = count_in(object, "global_batch");
  status.slots = count_in(object, "slots");
  status.steps_per_epoch = count_in(object, "steps_per_epoch");
  if (const auto it = object.find("members"); it != object.end() && it->is_array())
    status.members = it->size();
  status.loss = number_of(object, "loss");
  status.last_loss = number_of(object, "last_loss");
  status.accuracy = number_of(object, "accuracy");
  status.samples_per_second = number_of(object, "samples_per_second");
  if (const auto it = object.find("recent"); it != object.end() && it->is_object())
    if (const auto minute = it->find("60s"); minute != it->end() && minute->is_object())
      status.samples_per_second_60s = number_of(*minute, "samples_per_second");
  status.evaluations = count_in(object, "evaluations");
  status.lr = number_of(object, "lr");
  if (const auto it = object.find("predicts"); it != object.end())
    status.of_tokens = *it == "tokens";
  if (const auto it = object.find("eval"); it != object.end() && it->is_object()) {
    const auto loss = number_of(*it, "loss");
    const auto accuracy = number_of(*it, "accuracy");
    if (loss || accuracy)
      status.eval =
          EvalResult{count_in(*it, "step"), count_in(*it, "epoch"), accuracy,
                     loss.value_or(0),      status.of_tokens,       number_of(*it, "top5")};
  }
  return status;
}

Result<json> ask_status(const std::string& run_dir, int64_t timeout_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(const http::HttpAnswer answer,
                            ask_http(run_dir, "/api/v1/status", timeout_ms));
  json parsed = json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (answer.status != 200 || !parsed.is_object())
    return Status(Code::kUnavailable, "the coordinator's answer is not a status (HTTP " +
                                          std::to_string(answer.status) + ")");
  return parsed;
}

}  // namespace lockstep
