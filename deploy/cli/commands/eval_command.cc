#include <memory>
#include <utility>

#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/become_worker.h"
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

int evaluate_data(const EvalArguments& arguments) {
  auto words = worker_options(arguments.model);
  if (!words.is_ok()) return report(words.status());
  words->insert(words->begin(), "eval");
  const auto data = worker_options(arguments.data);
  words->insert(words->end(), data.begin(), data.end());
  if (!arguments.confusion.empty()) words->push_back("--confusion=" + arguments.confusion);
  if (arguments.is_json) words->emplace_back("--json");
  return become_worker(std::move(words).value());
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
  commands[command] = [arguments] { return evaluate_data(*arguments); };
}

}  // namespace lockstep
