#include <time.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "comm/base/clock.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/json_text.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/watch/live_line.h"
#include "deploy/cli/watch/run_reporter.h"
#include "deploy/cli/watch/run_source.h"
#include "deploy/cli/watch/run_status.h"
#include "deploy/cli/watch/run_summary.h"
#include "deploy/cli/watch/top_frame.h"

namespace lockstep {
namespace {

constexpr int64_t kTimeoutMs = 5'000;

struct StatusArguments {
  std::string run_dir;
  bool json = false;
  bool watch = false;
};

std::string text_of(const nlohmann::json& member, const char* key) {
  const auto it = member.find(key);
  if (it == member.end()) return "-";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

std::string speed_of(const nlohmann::json& member, const char* key) {
  const auto it = member.find(key);
  return it == member.end() || !it->is_number() ? "-" : rate_text(it->get<double>());
}

// The member's node, and where a worker with a GPU is bound.
std::string node_of(const nlohmann::json& member) {
  const std::string numa = member.contains("numa") ? ", " + text_of(member, "numa") : "";
  return printable_line(text_of(member, "node") + numa);
}

void print_members(const nlohmann::json& status) {
  const auto members = status.find("members");
  if (members == status.end() || !members->is_array() || members->empty()) return;
  constexpr char kRow[] = "%6s %8s %8s %10s %11s %11s  %-10s %s\n";
  print_text(kRow, "rank", "member", "pid", "step", "/s in 10 s", "in 60 s", "state", "node");
  for (const auto& member : *members)
    print_text(kRow, text_of(member, "rank").c_str(), text_of(member, "id").c_str(),
               text_of(member, "pid").c_str(), text_of(member, "step").c_str(),
               speed_of(member, "own_samples_per_second").c_str(),
               speed_of(member, "own_samples_per_second_60s").c_str(),
               text_of(member, "state").c_str(), node_of(member).c_str());
}

// "shoes: done after 2,345 steps".
std::string end_text(const nlohmann::json& summary) {
  const std::string after = " after " + grouped(summary.value("steps", uint64_t{0})) + " steps";
  const std::string run = summary.value("run", "run") + ": ";
  const int code = summary.value("exit_code", 0);
  if (code == 0) return run + "done" + after;
  const std::string message = summary.value("message", "");
  const std::string why = message.empty() ? "" : ": " + message;
  if (code == 75) return run + "stopped" + after + why;
  return run + "failed with code " + std::to_string(code) + after + why;
}

int tell_summary(const StatusArguments& arguments, const nlohmann::json& summary,
                 const std::string& checkpoint) {
  const std::string& dir = arguments.run_dir;
  print_text("%s\n%s", end_text(summary).c_str(), summary_table(summary, dir).c_str());
  if (!checkpoint.empty()) print_text("  last checkpoint %s\n", checkpoint.c_str());
  if (summary.value("exit_code", 0) != 0)
    print_text("continue it with: lockstep run --resume --run-dir %s\n", shell_word(dir).c_str());
  return kNotRunning;
}

// No process has recorded an end. A coordinator may be starting again, or every process died.
int tell_silence(const StatusArguments& arguments, const std::string& checkpoint,
                 const Status& why) {
  const std::string& dir = arguments.run_dir;
  auto source = RunSource::open(dir);
  const auto status = source.is_ok() ? source->get_json("status", "members=0") : source.status();
  if (status.is_ok() && !source->is_live()) {
    print_text("%s: interrupted after %s steps: all its processes are gone\n",
               status->value("run", "run").c_str(),
               grouped(status->value("step", uint64_t{0})).c_str());
    if (!checkpoint.empty()) print_text("  last checkpoint %s\n", checkpoint.c_str());
    print_text("continue it with: lockstep run --resume --run-dir %s\n", shell_word(dir).c_str());
    return kNotRunning;
  }
  print_text(
      "not running, or just starting: no coordinator answers for %s (%s); ask again in some "
      "seconds\n",
      dir.c_str(), why.message().c_str());
  return kNotRunning;
}

// The run is over, or its coordinator died: what is left to say.
int tell_ended(const StatusArguments& arguments, const Status& why) {
  const std::string& dir = arguments.run_dir;
  const auto summary = read_summary(dir);
  const auto checkpoints = list_checkpoints(rundir::file_in(dir, rundir::kCheckpoints));
  const bool has_checkpoint = checkpoints.is_ok() && !checkpoints->empty();
  if (!summary.is_ok() && !has_checkpoint &&
      !std::filesystem::exists(rundir::file_in(dir, rundir::kJobText)))
    return report(Status(Code::kNoInput, dir + " is not a run directory"));
  if (is_held(dir))
    return report(Status(Code::kUnavailable, "the run in " + dir +
                                                 " goes on, but its coordinator does not answer (" +
                                                 why.message() + "): ask again in a while"));
  const std::string checkpoint = has_checkpoint ? checkpoints->back().path : "";
  if (arguments.json) {
    nlohmann::json out = {{"state", "not running"}, {"members", nlohmann::json::array()}};
    if (summary.is_ok()) out["summary"] = *summary;
    if (has_checkpoint) out["last_checkpoint"] = checkpoint;
    std::fputs(json_text(out).c_str(), stdout);
    return kNotRunning;
  }
  return summary.is_ok() ? tell_summary(arguments, *summary, checkpoint)
                         : tell_silence(arguments, checkpoint, why);
}

int show_once(const StatusArguments& arguments) {
  const auto status = ask_status(arguments.run_dir, kTimeoutMs);
  if (!status.is_ok()) return tell_ended(arguments, status.status());
  if (arguments.json) {
    std::fputs(json_text(*status).c_str(), stdout);
    return 0;
  }
  const RunStatus parsed = parse_status(*status);
  print_text("%s\n", plain_line(parsed).c_str());
  if (const std::string more = figures_line(parsed); !more.empty())
    print_text("%s\n", more.c_str());
  print_members(*status);
  return 0;
}

// Watches until the coordinator is gone, or until Ctrl-C, which may simply end us: we own nothing.
int watch(const StatusArguments& arguments) {
  Reporter reporter(Screen::of_stdout());
  const SystemClock clock;
  const timespec pause = reporter.is_terminal() ? timespec{0, 200'000'000} : timespec{1, 0};
  for (;;) {
    const auto status = ask_status(arguments.run_dir, kTimeoutMs);
    if (!status.is_ok()) {
      reporter.passing("");
      return tell_ended(arguments, status.status());
    }
    reporter.status(parse_status(*status), clock.monotonic_ms());
    ::nanosleep(&pause, nullptr);
  }
}

constexpr char kStatusExamples[] =
    "Examples:\n"
    "  lockstep status --run-dir runs/first\n"
    "  lockstep status --run-dir runs/first --watch\n"
    "  lockstep status --run-dir runs/first --json | jq .step\n"
    "\n"
    "Exit codes: 0 running, 3 not running (it shows the summary or the last checkpoint), 66 no "
    "run\n"
    "there.";

}  // namespace

void add_status_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("status", "Show how a run is doing");
  const auto arguments = std::make_shared<StatusArguments>();
  command->add_option("--run-dir,-d,run_dir", arguments->run_dir, "Run directory")->required();
  command->add_flag("--json", arguments->json, "Print all that the coordinator tells, as JSON");
  command->add_flag("--watch,-w", arguments->watch, "Follow the run until it ends");
  command->footer(kStatusExamples);
  commands[command] = [arguments] {
    return arguments->watch && !arguments->json ? watch(*arguments) : show_once(*arguments);
  };
}

}  // namespace lockstep
