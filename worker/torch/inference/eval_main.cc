#include "worker/torch/inference/eval_main.h"

#include <span>
#include <string>

#include "comm/base/file.h"
#include "worker/torch/inference/label_map.h"
#include "worker/torch/inference/score_batch.h"
#include "worker/torch/inference/use_words.h"

namespace lockstep {
namespace {

struct EvalWords {
  UseWords use;
  PartWords part;
  bool needs_matrix = false;
};

Status check_words(const EvalWords& words, const ModelAndData& opened, const Scores& scores) {
  const bool has_targets = opened.data->dataset().shape().fields != nullptr;
  if (!opened.data->has_labels() && !has_targets)
    return {Code::kUsage, opened.data->name() +
                              " has images that are in no class's directory, so they have no "
                              "labels; move them out (--format image_folder reads the classes "
                              "alone), or use lockstep predict, which needs no labels"};
  if (words.needs_matrix && scores.confusion.empty())
    return {Code::kUsage,
            "there is no confusion matrix of tokens, of numbers, of a loss of the "
            "model's own, nor of more than " +
                std::to_string(Scores::kMostClasses) + " classes; leave out --confusion"};
  return Status::ok();
}

Status evaluate_part(const EvalWords& words) {
  ModelAndData opened;
  LOCKSTEP_RETURN_IF_ERROR(open_model_and_data(words.use, ModelUse::kEvaluate, &opened));
  PartScores part = begin_scores(opened);
  LOCKSTEP_RETURN_IF_ERROR(check_words(words, opened, part.scores));
  LOCKSTEP_ASSIGN_OR_RETURN(const LabelMap map, LabelMap::make(opened));
  UsedBatch batch;
  const auto use = [&](uint64_t begin, uint64_t end) {
    LOCKSTEP_RETURN_IF_ERROR(opened.data->read(begin, end, &batch));
    LOCKSTEP_RETURN_IF_ERROR(
        map.apply(std::span(batch.labels).first((end - begin) * batch.shape.labels())));
    add_batch(*opened.model, batch, end - begin, &part);
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(for_each_batch(words.part, part.scores.samples, opened.batch, use));
  return replace_file(words.part.out, part_text(part));
}

}  // namespace

int eval_main(int argc, char** argv) {
  EvalWords words;
  CLI::App app("Evaluates a trained model on a part of the samples; started by `lockstep eval`.",
               "eval");
  add_use_words(app, words.use);
  add_part_words(app, words.part);
  app.add_flag("--needs-matrix", words.needs_matrix, "refuse a model without a confusion matrix");
  return run_use_command(app, argc, argv, "the model cannot compute this",
                         [&] { return evaluate_part(words); });
}

}  // namespace lockstep
