#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <memory>

#include "deploy/agent/process.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/scratch_directory.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/commands/trained_place.h"
#include "deploy/cli/commands/used_data.h"

namespace lockstep {
namespace {

struct EvalArguments {
  TrainedPlace model;
  UsedDataWords data;
  std::string confusion;
  bool is_json = false;
};

// The worker prints by itself. It does not take over this process, which removes its temporary
// files, however it ends.
Result<int> evaluate_data(const EvalArguments& arguments) {
  if (arguments.data.path.empty() &&
      (arguments.data.is_training || arguments.data.format != "auto"))
    return Status(Code::kUsage, "--format and --train-split are about DATA, which is not named");
  LOCKSTEP_ASSIGN_OR_RETURN(const auto model, worker_options(arguments.model));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("lockstep-eval-"));
  ProcessSpec spec;
  spec.argv = {sibling_program("lockstep-worker"), "eval", "--scratch", scratch->path()};
  spec.argv.insert(spec.argv.end(), model.begin(), model.end());
  const auto data = worker_options(arguments.data);
  spec.argv.insert(spec.argv.end(), data.begin(), data.end());
  if (!arguments.confusion.empty()) spec.argv.push_back("--confusion=" + arguments.confusion);
  if (arguments.is_json) spec.argv.emplace_back("--json");
  spec.parent_death_signal = SIGKILL;
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  const ProcessEnd end = ProcessEnd::from_wait_status(wait_status);
  if (end.exit_code >= 0) return end.exit_code;
  return Status(Code::kInternal,
                "lockstep-worker " + end.text() + "; if memory is short, give a smaller --batch");
}

int report_evaluation(const EvalArguments& arguments) {
  const auto code = evaluate_data(arguments);
  return code.is_ok() ? *code : report(code.status());
}

constexpr char kEvalNotes[] =
    "Prints loss and accuracy, of ten or more classes also top 5; then recall, precision and the\n"
    "confusion matrix; of tokens the perplexity. Without DATA a run is evaluated on its own\n"
    "evaluation data and gives the figures of its last evaluation.\n\n"
    "Examples:\n"
    "  lockstep eval runs/shoes\n"
    "  lockstep eval runs/shoes /data/other-test --checkpoint best --json\n"
    "  lockstep eval shoes-model /data/test --confusion confusion.svg\n"
    "\n"
    "Exit codes: 0 printed, 64 wrong option or DATA, 65 the model is damaged or DATA does not fit "
    "it,\n"
    "66 nothing there or no checkpoint yet, 70 writing failed.";

}  // namespace

void add_eval_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("eval", "How well a trained model does on labelled data");
  const auto arguments = std::make_shared<EvalArguments>();
  add_trained_place(*command, arguments->model);
  add_used_data(*command, arguments->data, /*is_needed=*/false);
  command->add_option("--confusion", arguments->confusion,
                      "File for the confusion matrix: FILE.csv, or FILE.svg, a picture");
  command->add_flag("--json", arguments->is_json, "Print JSON, for programs");
  command->footer(kEvalNotes);
  commands[command] = [arguments] { return report_evaluation(*arguments); };
}

}  // namespace lockstep
