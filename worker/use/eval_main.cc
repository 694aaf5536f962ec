#include "worker/use/eval_main.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/labels.h"
#include "comm/base/text/shell_word.h"
#include "comm/inherited/standard_streams.h"
#include "data/read/label_count.h"
#include "worker/engine/core/loss.h"
#include "worker/engine/top_classes.h"
#include "worker/use/scores.h"
#include "worker/use/use_words.h"

namespace lockstep {
namespace {

struct EvalWords {
  UseWords use;
  bool is_json = false;
  std::string confusion;
};

// What a label of the data is to the model: the class of the same name.
class LabelMap {
 public:
  static Result<LabelMap> make(const ModelAndData& opened) {
    LabelMap map;
    const data::Dataset& dataset = opened.data->dataset();
    const auto& known = opened.trained.legend.class_names();
    const std::vector<std::string>& names = dataset.class_names();
    map.classes_ = opened.model->classes();
    if (dataset.shape().is_sequence() || names.empty() || known.empty() ||
        std::equal(names.begin(), names.end(), known.begin(), known.end()))
      return map;
    for (const std::string& name : names) {
      const auto at = std::find(known.begin(), known.end(), name);
      if (at == known.end())
        return Status(Code::kBadData, opened.data->name() + " has the class " + shell_word(name) +
                                          ", which the model does not know; it knows " +
                                          some_of(known));
      map.to_.push_back(at - known.begin());
    }
    return map;
  }

  // False for a label that the model has no class for.
  bool apply(std::vector<int64_t>& labels) const {
    for (int64_t& label : labels) {
      if (label == kIgnoredLabel) continue;
      if (!to_.empty()) label = to_[static_cast<size_t>(label)];
      if (label >= int64_t{classes_}) return false;
    }
    return true;
  }

 private:
  template <typename Names>
  static std::string some_of(const Names& names) {
    constexpr int kShown = 5;
    std::string text;
    for (int i = 0; i < std::min<int>(kShown, names.size()); ++i)
      text += (i > 0 ? ", " : "") + names[i];
    return names.size() > kShown ? text + " ..." : text;
  }

  uint32_t classes_ = 0;
  std::vector<int64_t> to_;  // by label of the data; empty: as they are
};

Scores begin_scores(const ModelAndData& opened) {
  Scores scores;
  const data::Dataset& dataset = opened.data->dataset();
  const uint32_t classes = opened.model->classes();
  scores.samples = dataset.samples();
  scores.labels = data::all_counted_labels(dataset);
  scores.is_of_tokens = dataset.shape().is_sequence();
  scores.has_top5 = classes >= kFewestClassesForTop && !scores.is_of_tokens;
  if (scores.is_of_tokens || classes > Scores::kMostClasses) return scores;
  scores.confusion.resize(size_t{classes} * classes);
  const auto& names = opened.trained.legend.class_names();
  for (uint32_t i = 0; i < classes; ++i)
    scores.class_names.push_back(static_cast<int>(i) < names.size() ? names[static_cast<int>(i)]
                                                                    : std::to_string(i));
  return scores;
}

// As the run's evaluation adds them: rows of a batch, then batches.
void add_batch(const at::Tensor& logits, std::vector<int64_t>& labels, Scores* scores) {
  const auto classes = static_cast<uint64_t>(logits.size(-1));
  const float* rows = logits.const_data_ptr<float>();
  SlotLoss batch;
  for (size_t row = 0; row < labels.size(); ++row) {
    const float* values = rows + row * classes;
    batch.add(softmax_cross_entropy(values, RowTarget{.label = labels[row]}, classes, 1, nullptr));
    if (scores->confusion.empty()) continue;
    const auto best = static_cast<size_t>(std::max_element(values, values + classes) - values);
    ++scores->confusion[static_cast<size_t>(labels[row]) * classes + best];
  }
  scores->loss_sum += batch.sum;
  scores->correct += batch.correct;
  if (scores->has_top5) scores->top5 += count_in_top(logits, labels.data());
}

Status check_confusion(const std::string& path) {
  std::error_code error;
  if (path.empty()) return Status::ok();
  if (!path.ends_with(".svg") && !path.ends_with(".csv"))
    return {Code::kUsage, "--confusion names " + shell_word(path) +
                              "; it takes a file that ends in .csv or .svg"};
  if (std::filesystem::exists(path, error))
    return {Code::kUsage, shell_word(path) + " is there already; name another file"};
  return Status::ok();
}

Status write_confusion(const std::string& path, const Scores& scores) {
  if (path.empty()) return Status::ok();
  return replace_file(path, path.ends_with(".svg") ? confusion_svg(scores) : confusion_csv(scores));
}

Status evaluate_model(const EvalWords& words) {
  LOCKSTEP_RETURN_IF_ERROR(check_confusion(words.confusion));
  ModelAndData opened;
  LOCKSTEP_RETURN_IF_ERROR(open_model_and_data(words.use, &opened));
  if (!opened.data->has_labels())
    return {Code::kUsage, opened.data->name() +
                              " has images that are in no class's directory, so they have no "
                              "labels; move them out (--format image_folder reads the classes "
                              "alone), or use lockstep predict, which needs no labels"};
  LOCKSTEP_ASSIGN_OR_RETURN(const LabelMap map, LabelMap::make(opened));
  Scores scores = begin_scores(opened);
  if (!words.confusion.empty() && scores.confusion.empty())
    return {Code::kUsage, "there is no confusion matrix of tokens, nor of more than " +
                              std::to_string(Scores::kMostClasses) + " classes"};
  UsedBatch batch;
  for (uint64_t begin = 0; begin < scores.samples; begin += opened.batch) {
    const uint64_t end = std::min(begin + opened.batch, scores.samples);
    LOCKSTEP_RETURN_IF_ERROR(opened.data->read(begin, end, &batch));
    if (!map.apply(batch.labels))
      return {Code::kBadData, opened.data->name() +
                                  " has a label that is no class of the model, "
                                  "which has " +
                                  std::to_string(opened.model->classes()) +
                                  " classes; name data with the same classes"};
    const at::Tensor logits = opened.model->logits(batch.shape, batch.inputs.data(), end - begin);
    add_batch(logits, batch.labels, &scores);
  }
  LOCKSTEP_RETURN_IF_ERROR(write_confusion(words.confusion, scores));
  const std::string text = words.is_json ? scores_json(scores).dump(2) + "\n" : scores_text(scores);
  print_text("%s", text.c_str());
  return finish_stdout();
}

}  // namespace

int eval_main(int argc, char** argv) {
  EvalWords words;
  CLI::App app("Evaluates a trained model; started by `lockstep eval`.", "eval");
  add_use_words(app, words.use);
  app.add_flag("--json", words.is_json, "for programs");
  app.add_option("--confusion", words.confusion, "file of the confusion matrix");
  return run_use_command(app, argc, argv, [&] { return evaluate_model(words); });
}

}  // namespace lockstep
