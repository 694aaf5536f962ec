#include "worker/torch/inference/generate_main.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "comm/base/text/shell_word.h"
#include "comm/environment/progress_line.h"
#include "comm/environment/standard_streams.h"
#include "worker/inference/trained_model.h"
#include "worker/model/weights/weight_files.h"
#include "worker/torch/inference/generator.h"
#include "worker/torch/inference/model_tensors.h"
#include "worker/torch/inference/use_words.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

struct GenerateWords {
  ModelPlace place;
  std::string prompt;
  std::string tokenizer;
  uint64_t tokens = 0;
  SamplingRule rule;
  int threads = 0;  // 0: by the size of the model
  bool tells_speed = false;
};

// A terminal gets nothing that could steer it; files and pipes get the bytes as they are.
void show(const std::string& text) {
  if (::isatty(STDOUT_FILENO) != 0) {
    print_text("%s", text.c_str());
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  std::fflush(stdout);
}

Result<uint32_t> vocabulary_of(const std::string& weights) {
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files,
                            WeightFiles::open(weights, WeightSource::kRun));
  for (const FileTensor& tensor : files.tensors())
    if (tensor.name.ends_with("wte.weight") && tensor.shape.size() == 2)
      return static_cast<uint32_t>(tensor.shape[0]);
  return Status(Code::kBadData, weights + " has no wte.weight, the embedding of a gpt2");
}

// Threads wait for each other in every layer, which costs more than a small layer.
int threads_for(const ModelLayout& layout) {
  constexpr uint64_t kLargeModel = 30'000'000;
  uint64_t elements = 0;
  for (const ParameterSpec& spec : layout.parameters) elements += spec.elements();
  return elements < kLargeModel ? 1 : static_cast<int>(std::thread::hardware_concurrency());
}

Status write_text(const GenerateWords& words, Generator& generator, TokenText& text,
                  uint64_t* made) {
  const auto end = text.end();
  const bool is_seen = ::isatty(STDOUT_FILENO) != 0;
  ProgressLine progress;
  for (uint64_t i = 0; i < words.tokens; ++i) {
    if (!is_seen) progress.show("generating", i, words.tokens);
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t token, generator.next());
    if (token == end) break;
    ++*made;
    show(text.add(token));
    if (std::ferror(stdout) != 0) break;  // told at the end
  }
  show(text.finish() + "\n");
  return Status::ok();
}

// The parts of one checkpoint that generation needs.
struct TextModel {
  wire::ModelSpec spec;
  std::optional<TokenText> text;
  uint32_t vocab = 0;
  Gpt2Parts parts;
  ModelTensors tensors;
};

Status load_text_model(const GenerateWords& words, const TrainedModel& model, TextModel* out) {
  out->spec = model.job.model();
  if (out->spec.name() != "gpt2")
    return {Code::kUsage, shell_word(model.place) + " has the model " + out->spec.name() +
                              ", but Lockstep generates text with gpt2 only"};
  LOCKSTEP_RETURN_IF_ERROR(check_gpt2(out->spec));
  LOCKSTEP_ASSIGN_OR_RETURN(out->text, token_text(model, words.tokenizer));
  LOCKSTEP_ASSIGN_OR_RETURN(out->vocab, vocabulary_of(model.weights));
  out->parts = make_gpt2_parts(out->spec, out->vocab);
  LOCKSTEP_ASSIGN_OR_RETURN(out->tensors,
                            load_model_tensors(model.weights, out->spec, out->parts.layout));
  return Status::ok();
}

Status generate(const GenerateWords& words) {
  TextModel model;
  LOCKSTEP_RETURN_IF_ERROR(load_trained_model(words.place, [&](const TrainedModel& found) {
    return load_text_model(words, found, &model);
  }));
  const wire::ModelSpec& spec = model.spec;
  const uint32_t vocab = model.vocab;
  TokenText& text = *model.text;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> prompt, text.encode(words.prompt, vocab));
  at::set_num_threads(words.threads > 0 ? words.threads : threads_for(model.parts.layout));
  std::vector<bool> may_be(vocab);
  for (uint32_t token = 0; token < vocab; ++token) may_be[token] = text.has(token);
  Gpt2Session session(spec, std::move(model.parts), std::move(model.tensors.parameters));
  Generator generator(session, std::move(may_be), words.rule);
  if (prompt.size() > spec.block())
    print_error("lockstep: the prompt has %zu tokens; the model reads the last %u (model.block)\n",
                prompt.size(), spec.block());
  std::string shown;
  for (const int64_t token : prompt) shown += text.add(static_cast<uint32_t>(token));
  show(shown);
  const Clock::time_point begun = Clock::now();
  generator.begin(prompt);
  uint64_t made = 0;
  LOCKSTEP_RETURN_IF_ERROR(write_text(words, generator, text, &made));
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  if (words.tells_speed)
    print_error("%llu tokens in %.3f s, %.1f tokens/s\n", static_cast<unsigned long long>(made),
                seconds, static_cast<double>(made) / seconds);
  return finish_stdout();
}

}  // namespace

int generate_main(int argc, char** argv) {
  GenerateWords words;
  CLI::App app("Goes on with a text; started by `lockstep generate`.", "generate");
  add_model_place(app, words.place);
  app.add_option("--prompt", words.prompt, "the text to go on with")->required();
  app.add_option("--tokenizer", words.tokenizer, "vocabulary, in place of the model's");
  app.add_option("--tokens", words.tokens, "at most so many")->required();
  app.add_option("--temperature", words.rule.temperature)->required();
  app.add_option("--top-k", words.rule.top_k)->required();
  app.add_option("--top-p", words.rule.top_p)->required();
  app.add_option("--seed", words.rule.seed)->required();
  app.add_option("--threads", words.threads)->required();
  app.add_flag("--speed", words.tells_speed, "say tokens/s on stderr");
  return run_use_command(app, argc, argv, "generating failed", [&] { return generate(words); });
}

}  // namespace lockstep
