#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "comm/environment/standard_streams.h"
#include "coordinator/audit/audit_text.h"
#include "coordinator/audit/ended_audit.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/commands.h"

namespace lockstep {
namespace {

constexpr int kNotClean = 1;

struct AuditArguments {
  std::string run_dir;
  std::string steps;
  bool json = false;
};

// Steps first..last, counted from 1; none is asked for when last is 0.
struct StepRange {
  Step first = 1;
  Step last = 0;
};

bool read_step(std::string_view text, Step* step) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *step);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && *step > 0;
}

Result<StepRange> parse_steps(const std::string& text) {
  StepRange range;
  if (text.empty()) return range;
  const std::string_view all = text;
  const size_t colon = all.find(':');
  const bool is_one = colon == std::string_view::npos;
  if (read_step(all.substr(0, colon), &range.first) &&
      read_step(is_one ? all : all.substr(colon + 1), &range.last) && range.first <= range.last) {
    return range;
  }
  return Status(Code::kUsage,
                "--steps " + text +
                    " is not a range of steps; give FIRST:LAST, counted from 1, such as "
                    "--steps 812:815, or one step");
}

Result<int> audit_run(const AuditArguments& arguments) {
  using namespace coordinator;
  LOCKSTEP_ASSIGN_OR_RETURN(const StepRange range, parse_steps(arguments.steps));
  std::vector<std::string> rows;
  const auto on_step = [&](const AuditedStep& step) {
    if (step.step + 1 < range.first || step.step + 1 > range.last) return;
    if (arguments.json) {
      rows.push_back(step_json(step));
    } else {
      print_text("%s", step_text(step).c_str());
    }
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const AuditReport report, audit_ended_run(arguments.run_dir, on_step));
  std::fputs((arguments.json ? audit_json(report, rows) : audit_text(report)).c_str(), stdout);
  return report.is_clean() ? 0 : kNotClean;
}

constexpr char kAuditNotes[] =
    "Tells from the journal which generation, member and slot computed which samples. Computes "
    "again\n"
    "from the seed what the loaders had to deliver, and compares it with their digests. If a "
    "script\n"
    "draws samples by weights, it proves that every position was used once, and says drawn.\n\n"
    "Examples:\n"
    "  lockstep audit runs/first\n"
    "  lockstep audit runs/first --steps 812:815\n"
    "  lockstep audit runs/first --json\n"
    "\n"
    "Exit codes: 0 every sample exactly once, 1 some were not (it names the positions), 64 the\n"
    "run still goes on, 65 the journal is lost or damaged, 66 no run there.";

}  // namespace

void add_audit_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("audit", "Prove that every sample was used exactly once");
  const auto arguments = std::make_shared<AuditArguments>();
  command->add_option("run-dir", arguments->run_dir, "Directory of a run that has ended")
      ->required();
  command->add_option("--steps", arguments->steps,
                      "Print the work of these steps: FIRST:LAST, counted from 1");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(kAuditNotes);
  commands[command] = [arguments] {
    const auto code = audit_run(*arguments);
    return code.is_ok() ? *code : report(code.status());
  };
}

}  // namespace lockstep
