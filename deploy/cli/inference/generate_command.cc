#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "deploy/cli/base/console.h"
#include "deploy/cli/commands/become_worker.h"
#include "deploy/cli/commands/commands.h"
#include "deploy/cli/inference/trained_place.h"

namespace lockstep {
namespace {

struct GenerateArguments {
  TrainedPlace model;
  std::string prompt;
  std::string tokenizer;
  uint64_t tokens = 100;
  double temperature = 1;
  uint32_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
  uint32_t threads = 0;
  bool speed = false;
};

Status check(const GenerateArguments& arguments) {
  if (arguments.prompt.empty())
    return {Code::kUsage, "the prompt is empty; give a text to go on with, such as --prompt 'To'"};
  if (!(arguments.temperature >= 0))
    return {Code::kUsage,
            "--temperature is below 0; 0 takes the likeliest token each time, 1 draws "
            "by the model's probabilities"};
  if (!(arguments.top_p > 0 && arguments.top_p <= 1))
    return {Code::kUsage, "--top-p is a probability above 0 and at most 1; 1 leaves out no token"};
  return Status::ok();
}

std::string exact(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

int generate_text(const GenerateArguments& arguments) {
  if (const Status right = check(arguments); !right.is_ok()) return report(right);
  auto words = worker_options(arguments.model);
  if (!words.is_ok()) return report(words.status());
  words->insert(words->begin(), "generate");
  // With "=": a prompt may begin with a dash.
  words->insert(words->end(),
                {"--prompt=" + arguments.prompt, "--tokens", std::to_string(arguments.tokens),
                 "--temperature", exact(arguments.temperature), "--top-k",
                 std::to_string(arguments.top_k), "--top-p", exact(arguments.top_p), "--seed",
                 std::to_string(arguments.seed), "--threads", std::to_string(arguments.threads)});
  if (!arguments.tokenizer.empty())
    words->push_back("--tokenizer=" + std::filesystem::absolute(arguments.tokenizer).string());
  if (arguments.speed) words->push_back("--speed");
  return become_worker(std::move(words).value());
}

constexpr char kGenerateNotes[] =
    "Shows the prompt and goes on with it, token by token. The model is a gpt2. The same seed "
    "gives\n"
    "the same text. A text ends before the token <|endoftext|>, if the tokenizer has it. Where\n"
    "model.block is full, the model goes on from the last half of it.\n\n"
    "Tokens of a run on text are bytes, or those of its data.tokenizer. A run on files of tokens\n"
    "takes and prints their numbers, unless --tokenizer names the vocabulary.\n\n"
    "Examples:\n"
    "  lockstep generate runs/shakespeare --prompt 'To be' --tokens 300\n"
    "  lockstep generate runs/shakespeare --prompt 'To be' --temperature 0    # the likeliest\n"
    "  lockstep generate my-gpt2 --prompt 'The' --top-k 40 --temperature 0.8 --seed 7\n"
    "  lockstep generate runs/tokens --prompt '464 2068' --tokens 20\n"
    "\n"
    "Exit codes: 0 written, 64 wrong option or prompt, or no gpt2, 65 the model is damaged, 66 "
    "nothing\n"
    "there or no checkpoint yet, 70 writing failed.";

}  // namespace

void add_generate_command(CLI::App& app, Commands& commands) {
  auto* command = app.add_subcommand("generate", "Go on with a text by a trained gpt2");
  const auto arguments = std::make_shared<GenerateArguments>();
  add_trained_place(*command, arguments->model);
  command->add_option("--prompt", arguments->prompt, "The text to go on with")->required();
  command->add_option("--tokens", arguments->tokens, "At most so many (default: 100)");
  command->add_option("--temperature", arguments->temperature,
                      "Below 1: likelier tokens oftener; 0: always the likeliest (default: 1)");
  command->add_option("--top-k", arguments->top_k, "Only the K likeliest tokens (default: 0, all)");
  command->add_option("--top-p", arguments->top_p,
                      "Only the fewest tokens of this probability together (default: 1)");
  command->add_option("--seed", arguments->seed, "Of the random numbers (default: 0)");
  command->add_option("--tokenizer", arguments->tokenizer,
                      "Vocabulary, in place of the model's own (as data.tokenizer)");
  command
      ->add_option("--threads", arguments->threads,
                   "That compute (default: 1, with a large model all processors)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--speed", arguments->speed, "Print tokens/s to stderr at the end");
  command->footer(kGenerateNotes);
  commands[command] = [arguments] { return generate_text(*arguments); };
}

}  // namespace lockstep
