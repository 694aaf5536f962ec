#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/layout.h"
#include "deploy/cli/base/console.h"
#include "deploy/cli/base/scratch_directory.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/inference/new_file.h"
#include "deploy/cli/inference/part_processes.h"
#include "deploy/cli/inference/trained_place.h"
#include "deploy/cli/inference/used_data.h"
#include "worker/inference/score_parts.h"

namespace lockstep {
namespace {

struct EvalArguments {
  TrainedPlace model;
  UsedDataWords data;
  uint32_t workers = 1;
  std::string confusion;
  bool is_json = false;
};

Status check_arguments(const EvalArguments& arguments) {
  std::error_code error;
  const std::string& path = arguments.confusion;
  if (arguments.data.path.empty() &&
      (arguments.data.is_training || arguments.data.format != "auto"))
    return {Code::kUsage, "--format and --train-split are about DATA, which is not named"};
  if (path.empty()) return Status::ok();
  if (!path.ends_with(".svg") && !path.ends_with(".csv"))
    return {Code::kUsage, "--confusion names " + shell_word(path) +
                              "; it takes a file that ends in .csv or .svg"};
  if (std::filesystem::exists(path, error))
    return {Code::kUsage, shell_word(path) + " is there already; name another file"};
  return Status::ok();
}

Result<Scores> joined_scores(const PartProcesses& task) {
  std::vector<PartScores> parts;
  for (uint32_t part = 0; part < task.parts; ++part) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              read_file(task.file(part), limits::kModelFileBytes));
    LOCKSTEP_ASSIGN_OR_RETURN(PartScores scores, parse_part(text));
    parts.push_back(std::move(scores));
  }
  return joined(parts);
}

Status evaluate_data(const EvalArguments& arguments) {
  LOCKSTEP_RETURN_IF_ERROR(check_arguments(arguments));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("lockstep-eval-"));
  PartProcesses task;
  task.what = "evaluating";
  task.parts = arguments.workers;
  task.directory = scratch->path();
  task.words = {"eval", "--scratch", task.directory};
  if (!arguments.confusion.empty()) task.words.emplace_back("--needs-matrix");
  const auto data = worker_options(arguments.data);
  task.words.insert(task.words.end(), data.begin(), data.end());
  LOCKSTEP_RETURN_IF_ERROR(run_parts_with(arguments.model, task));
  LOCKSTEP_ASSIGN_OR_RETURN(const Scores scores, joined_scores(task));
  if (const std::string& path = arguments.confusion; !path.empty()) {
    const std::string half =
        path + std::string(rundir::kTemporaryMark) + std::to_string(::getpid());
    Status written =
        replace_file(half, path.ends_with(".svg") ? confusion_svg(scores) : confusion_csv(scores));
    if (written.is_ok()) written = publish_new_file(half, path);
    std::error_code ignored;
    if (!written.is_ok()) std::filesystem::remove(half, ignored);
    LOCKSTEP_RETURN_IF_ERROR(written);
  }
  const std::string text = arguments.is_json ? scores_json_text(scores) : scores_text(scores);
  print_text("%s", text.c_str());
  return finish_stdout();
}

constexpr char kEvalNotes[] =
    "Prints loss and accuracy, of ten or more classes also top 5; then recall, precision and the\n"
    "confusion matrix; of tokens the perplexity; of numbers (as with train.loss mse) RMSE and\n"
    "MAE; of a model with its own loss its metrics. Without DATA a run is evaluated on its own\n"
    "evaluation data and gives the figures of its last evaluation. They are the same for any\n"
    "number of --workers.\n\n"
    "Examples:\n"
    "  lockstep eval runs/shoes\n"
    "  lockstep eval runs/shoes /data/other-test --checkpoint best --json\n"
    "  lockstep eval shoes-model /data/test --confusion confusion.svg --workers 4\n"
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
  add_part_count(*command, arguments->workers);
  command->add_option("--confusion", arguments->confusion,
                      "File for the confusion matrix: FILE.csv, or FILE.svg, a picture");
  command->add_flag("--json", arguments->is_json, "Print JSON, for programs");
  command->footer(kEvalNotes);
  commands[command] = [arguments] { return report(evaluate_data(*arguments)); };
}

}  // namespace lockstep
