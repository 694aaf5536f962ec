#include "deploy/slurm/batch_script.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "comm/base/text/shell_word.h"

namespace lockstep {
namespace {

constexpr std::string_view kIndex = "%a";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// One word for bash. `has_index`: %a is the number of the run in an array.
std::string script_word(std::string word, bool has_index) {
  if (!has_index || word.find(kIndex) == std::string::npos) return shell_word(word);
  replace_all(word, "'", "'\\''");
  replace_all(word, kIndex, "'\"$SLURM_ARRAY_TASK_ID\"'");
  return "'" + word + "'";
}

// One word for a line of #SBATCH, which Slurm takes apart itself.
std::string slurm_word(std::string word) {
  std::string without_brackets = word;
  std::erase_if(without_brackets, [](char c) { return c == '[' || c == ']'; });
  if (is_plain_word(without_brackets)) return word;
  replace_all(word, "\\", "\\\\");
  replace_all(word, "\"", "\\\"");
  return "\"" + word + "\"";
}

Status check_text(std::string_view what, std::string_view text) {
  if (std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }))
    return Status::ok();
  return Status(Code::kUsage, std::string(what) +
                                  " holds a line break or another control character, which a "
                                  "batch script cannot hold");
}

Status check(const BatchRequest& request) {
  for (const auto& [what, text] :
       {std::pair<std::string_view, std::string_view>{"the path of the job file", request.job_file},
        {"--run-dir", request.run_dir},
        {"the working directory", request.working_directory},
        {"--partition", request.partition},
        {"--array", request.array}})
    LOCKSTEP_RETURN_IF_ERROR(check_text(what, text));
  for (const std::string& word : request.overrides)
    LOCKSTEP_RETURN_IF_ERROR(check_text("an override", word));
  for (const std::string& word : request.slurm_words)
    LOCKSTEP_RETURN_IF_ERROR(check_text("an argument of sbatch", word));
  if (request.array.empty() && request.run_dir.find(kIndex) != std::string::npos)
    return Status(Code::kUsage,
                  "--run-dir contains %a (the number of a run), but there is no --array; give "
                  "--array, or leave %a out");
  if (request.time.empty()) return Status::ok();
  const auto seconds = slurm_seconds(request.time);
  if (!seconds)
    return Status(Code::kUsage, "--time is \"" + request.time +
                                    "\" but must be minutes, minutes:seconds, "
                                    "hours:minutes:seconds, days-hours or days-hours:minutes");
  if (*seconds > 0 && *seconds <= request.stop_before_s)
    return Status(Code::kUsage,
                  "--time " + request.time + " is over " + std::to_string(*seconds) +
                      " s after the start, and the job stops " +
                      std::to_string(request.stop_before_s) +
                      " s before: Slurm would requeue it for ever; give more time, or a smaller "
                      "--stop-before");
  return Status::ok();
}

std::string sbatch_lines(const BatchRequest& request) {
  std::string lines;
  const auto say = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) lines += "#SBATCH --" + key + "=" + slurm_word(value) + "\n";
  };
  say("job-name", request.name);
  say("nodes", std::to_string(request.nodes));
  say("ntasks-per-node", std::to_string(request.tasks_per_node));
  if (request.gpus_per_node > 0) say("gpus-per-node", std::to_string(request.gpus_per_node));
  say("time", request.time);
  say("partition", request.partition);
  say("array", request.array);
  say("chdir", request.working_directory);
  say("signal", "B:USR1@" + std::to_string(request.stop_before_s));
  lines += "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --no-kill\n";
  for (const std::string& word : request.slurm_words) {
    if (!word.starts_with("-")) lines.back() = ' ';  // the value of the word before it
    lines += (word.starts_with("-") ? "#SBATCH " : "") + slurm_word(word) + "\n";
  }
  return lines;
}

constexpr char kPassOn[] = R"(
# Slurm sends USR1 before the end of the job's time and when it is preempted, and TERM when it is
# cancelled. srun passes USR1 on to the agents: a checkpoint, then code 75.
step=
told=
stop() {
  told=1
  [[ -z $step ]] || kill -s USR1 "$step" 2>/dev/null
}
trap stop USR1 TERM

# srun takes the number of cores of a task from this name only.
[[ -z ${SLURM_CPUS_PER_TASK:-} ]] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

# A node that is lost, or a task that ends badly, must not end the others.
srun --no-kill --kill-on-bad-exit=0 --wait=0 \
)";

constexpr char kWaitAndRequeue[] = R"(step=$!
[[ -z $told ]] || stop

# A signal ends `wait` but not srun; one that came just before has set `told` all the same.
code=127
while :; do
  told=
  wait "$step"
  result=$?
  ((result == 127)) || code=$result  # 127: it has been waited for
  [[ -n $told ]] || break
done
((code != 138)) || code=75  # USR1 came before anybody could obey it: nothing has begun

# A task of an array has two numbers. One task's SLURM_JOB_ID is the whole array's number too, and
# would stand for all tasks.
job=$SLURM_JOB_ID
[[ -z ${SLURM_ARRAY_JOB_ID:-} ]] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID

# 75 does not requeue a job by itself, not even one that is preempted and ends in its grace time.
must_requeue() {
  local state range tries
  for range in $(scontrol show config | sed -n 's/^RequeueExit  *= *//p' | tr , ' '); do
    [[ $range =~ ^[0-9]+(-[0-9]+)?$ ]] || continue
    ((75 < ${range%-*} || 75 > ${range#*-})) || return 1  # Slurm will
  done
  for tries in 1 2 3 4 5 6; do
    state=$(squeue --noheader --jobs="$job" --format=%T) && break
    sleep 10  # the controller is starting again
  done
  # In any other state it was cancelled, or Slurm is requeuing it already.
  [[ $state == RUNNING ]]
}
if ((code == 75)) && must_requeue; then
  echo "lockstep: code 75, so there is more to do; requeuing job $job"
  scontrol requeue "$job"
fi
exit "$code"
)";

}  // namespace

std::optional<uint64_t> slurm_seconds(std::string_view time) {
  std::vector<uint64_t> numbers;
  std::string marks;
  while (true) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    time.remove_prefix(static_cast<size_t>(end - time.data()));
    if (time.empty()) break;
    marks += time[0];
    time.remove_prefix(1);
  }
  numbers.resize(4);
  if (marks.empty()) return 60 * numbers[0];
  if (marks == ":") return 60 * numbers[0] + numbers[1];
  if (marks == "::") return 3600 * numbers[0] + 60 * numbers[1] + numbers[2];
  if (marks == "-" || marks == "-:" || marks == "-::")
    return 86'400 * numbers[0] + 3600 * numbers[1] + 60 * numbers[2] + numbers[3];
  return std::nullopt;
}

Result<std::string> batch_script(const BatchRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(check(request));
  const bool is_array = !request.array.empty();
  std::string run_dir = request.run_dir;
  if (is_array && run_dir.find(kIndex) == std::string::npos) run_dir += "/" + std::string(kIndex);
  std::string command =
      "  " + shell_word(request.program) + " agent " + shell_word(request.job_file);
  for (const std::string& word : request.overrides) command += " " + script_word(word, is_array);
  command += " --run-dir " + script_word(run_dir, is_array);
  return "#!/bin/bash\n" + sbatch_lines(request) +
         "\n"
         "# Written by 'lockstep sbatch'. Submit it again to go on with what the run directory "
         "holds.\n" +
         kPassOn + command + " &\n" + kWaitAndRequeue;
}

}  // namespace lockstep
