// The scores of a model on labelled data: loss, right predictions, and by class.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep {

// Sums over samples, of one batch or of all.
struct ScoreSums {
  double loss = 0;
  double weight = 0;   // of the samples; 0 without weights
  double squared = 0;  // of the errors of numbers; `absolute`, too
  double absolute = 0;
  std::vector<double> metrics;  // of the model, by Scores::metric_names

  void add(const ScoreSums& other);
};

// `samples` and `labels` count the whole data set.
struct Scores {
  uint64_t samples = 0;
  uint64_t labels = 0;  // that count: of an image one, of a sequence one a token
  ScoreSums sums;
  uint64_t correct = 0;
  uint64_t top5 = 0;
  bool has_accuracy = true;  // a prediction is right or wrong
  bool has_top5 = false;     // with at least ten classes
  bool has_weights = false;  // the mean loss is over weights
  bool has_errors = false;   // labels and predictions are numbers
  bool is_of_tokens = false;
  std::vector<std::string> metric_names;
  // By true class, then by predicted class; empty for tokens, and for more than kMostClasses.
  std::vector<uint64_t> confusion;
  std::vector<std::string> class_names;  // as many as classes

  static constexpr uint32_t kMostClasses = 4096;

  uint64_t of(size_t truth, size_t predicted) const {
    return confusion[truth * class_names.size() + predicted];
  }
  double loss() const;
  double mean_of_samples(double sum) const { return sum / static_cast<double>(samples); }
};

// For people. The confusion matrix only where it fits a terminal.
std::string scores_text(const Scores& scores);
nlohmann::ordered_json scores_json(const Scores& scores);
std::string scores_json_text(const Scores& scores);
// The confusion matrix for spreadsheets, and as a picture. REQUIRES: there is one.
std::string confusion_csv(const Scores& scores);
std::string confusion_svg(const Scores& scores);

}  // namespace lockstep
