#include "deploy/cli/job/job_script.h"

#include "comm/base/log.h"
#include "comm/run/job/predictions.h"
#include "deploy/cli/job/job_told.h"
#include "deploy/cli/script/python_module.h"
#include "deploy/cli/script/script_block.h"
#include "deploy/cli/script/script_keys.h"

namespace lockstep {
namespace {

constexpr size_t kShownBytes = 80;

std::string text_of(const JobValue& value) {
  std::string text;
  for (const std::string& item : value.items) text += (text.empty() ? "" : ", ") + item;
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return json_escape(text);
}

// Why a script's job cannot have this value of a key that it may have; empty: it can.
std::string_view refused_value(std::string_view key, std::string_view value) {
  if (key == "train.global_batch" && value == "auto")
    return "Lockstep cannot tell how much memory a script needs; take a number, as in 256";
  if (key == "comm.backend" && value == "mpi")
    return "the gradients of a script are summed in the host's memory, or between GPUs "
           "(cluster.device: cuda); take host or nccl, or leave the key out";
  return {};
}

bool is_given(const JobValues& values, std::string_view key) {
  const auto it = values.find(key);
  return it != values.end() && it->second.items != std::vector<std::string>{""};
}

std::string given(const JobValues& values, const std::string& key) {
  const JobValue& value = values.at(key);
  return key + " is " + text_of(value) + " (" + value.origin + ")";
}

constexpr char kOneModel[] = ": a script makes its model itself; leave one of the two out";

Status check_one_model(const JobValues& values) {
  if (values.count("model.name") == 0) return Status::ok();
  for (const char* const key : {"script.module", "script.path"})  // -m gives both
    if (is_given(values, key))
      return Status(Code::kUsage,
                    given(values, key) + " but " + given(values, "model.name") + kOneModel);
  return Status::ok();
}

}  // namespace

Result<JobValues> parse_job_file(std::string_view text, const std::string& name,
                                 const std::string& script_path) {
  if (!is_script_file(name)) return parse_job_yaml(text, name);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string yaml, script_block(text, name));
  JobValues values;
  if (!yaml.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(values, parse_job_yaml(yaml, name));
  }
  if (const auto it = values.find("script.path"); it != values.end())
    return Status(Code::kUsage, it->second.origin + ": script.path names a script, but " + name +
                                    " is one; leave the key out");
  values["script.path"] = {{script_path}, name, false};
  return values;
}

bool is_script_job(const JobValues& values, const wire::JobSpec* stored) {
  if (const auto it = values.find("model.name"); it != values.end())
    return it->second.items == std::vector<std::string>{"script"};
  return is_given(values, "script.path") || is_given(values, "script.module") ||
         (stored != nullptr && is_script(stored->model()));
}

Status check_script_keys(const JobValues& values, const wire::JobSpec* stored) {
  if (!is_script_job(values, stored)) return check_one_model(values);
  const bool has_data = is_given(values, "data.train.path") ||
                        (stored != nullptr && !stored->data().train().path().empty());
  for (const auto& [key, value] : values) {
    std::string_view why = said_by_script(key, has_data);
    if (why.empty() && value.items.size() == 1) why = refused_value(key, value.items[0]);
    if (why.empty()) continue;
    return Status(Code::kUsage,
                  given(values, key) + " but the job is that of a script: " + std::string(why));
  }
  return Status::ok();
}

Status check_script(const JobValues& values, const JobContext& context, const wire::JobSpec& job) {
  const auto say = [&](std::string_view key) { return told(values, key, job); };
  const wire::ScriptSpec& script = job.script();
  if (is_script(job.model())) {
    for (const std::string& word : job.data().transforms())
      if (word.starts_with("mixup") || word.starts_with("cutmix"))
        return Status(Code::kUsage, say("data.transforms") +
                                        " but the job is that of a script: " + word +
                                        " gives samples two labels; leave it out, and mix "
                                        "the batches in the script");
    const bool is_module = !script.module().empty();
    if (is_module && script.path().empty()) return Status::ok();  // found where it runs
    if (is_module && folder_of_module(script.path(), script.module()).empty())
      return Status(Code::kUsage, say("script.module") + " but " + say("script.path") +
                                      ", which is the file of another module; leave one of the "
                                      "two out");
    if (!script.path().empty())
      return context.check_script(script.path()).with_context(say("script.path"));
    return Status(Code::kUsage, say("model.name") + " but " + say("script.path") +
                                    ": name the script, as in lockstep run train.py");
  }
  for (const auto& [key, value] :
       {std::pair{"script.module", script.module()}, std::pair{"script.path", script.path()}})
    if (!value.empty())
      return Status(Code::kUsage, say(key) + " but " + say("model.name") + kOneModel);
  if (script.args_size() > 0)
    return Status(Code::kUsage, say("script.args") + " but " + say("model.name") +
                                    ": only a script takes such words; name one in script.path, or "
                                    "leave the words (those behind --) out");
  return Status::ok();
}

}  // namespace lockstep
