#include "worker/torch/inference/score_batch.h"

#include <algorithm>
#include <cmath>

#include "data/loader/label_count.h"
#include "worker/engine/loss.h"
#include "worker/torch/device/sample_losses.h"
#include "worker/torch/engine/top_classes.h"

namespace lockstep {
namespace {

void count(int64_t label, size_t predicted, Scores* scores) {
  if (scores->confusion.empty()) return;
  ++scores->confusion[static_cast<size_t>(label) * scores->class_names.size() + predicted];
}

// Counts the predictions of the rows of logits (..., classes).
void count_rows(const at::Tensor& logits, const int64_t* labels, Scores* scores) {
  const auto classes = static_cast<uint64_t>(logits.size(-1));
  const auto rows = static_cast<uint64_t>(logits.numel()) / classes;
  const float* values = logits.const_data_ptr<float>();
  for (uint64_t row = 0; row < rows && !scores->confusion.empty(); ++row, values += classes)
    count(labels[row], static_cast<size_t>(std::max_element(values, values + classes) - values),
          scores);
  if (scores->has_top5) scores->top5 += count_in_top(logits, labels);
}

// Softmax cross entropy of classes or tokens.
void add_rows(const at::Tensor& logits, const int64_t* labels, PartScores* part) {
  const auto classes = static_cast<uint64_t>(logits.size(-1));
  const auto rows = static_cast<uint64_t>(logits.numel()) / classes;
  const float* values = logits.const_data_ptr<float>();
  SlotLoss loss;
  for (uint64_t row = 0; row < rows; ++row)
    loss.add(softmax_cross_entropy(values + row * classes, RowTarget{.label = labels[row]}, classes,
                                   1, nullptr));
  part->batches.emplace_back().loss = loss.sum;
  part->scores.correct += loss.correct;
  count_rows(logits, labels, &part->scores);
}

// Adds how far numbers are off: for each sample, the mean over its numbers.
void add_errors(const at::Tensor& outputs, const at::Tensor& target, ScoreSums* sums) {
  const at::Tensor values = outputs.to(at::kDouble).flatten(1);
  const at::Tensor errors =
      values.sub(target.to(at::kDouble).reshape({values.size(0), -1})).contiguous();
  const double* error = errors.const_data_ptr<double>();
  const auto numbers = static_cast<double>(errors.size(1));
  for (int64_t i = 0; i < errors.numel(); ++i) {
    sums->squared += error[i] * error[i] / numbers;
    sums->absolute += std::abs(error[i]) / numbers;
  }
}

// One logit a sample: above 0 it says class 1.
void count_signs(const at::Tensor& outputs, const at::Tensor& target, Scores* scores) {
  if (scores->confusion.empty()) return;
  const at::Tensor values = outputs.to(at::kFloat).contiguous();
  const at::Tensor wanted = target.to(at::kFloat).contiguous();
  for (int64_t i = 0; i < values.numel(); ++i)
    count(wanted.const_data_ptr<float>()[i] > 0.5F ? 1 : 0,
          values.const_data_ptr<float>()[i] > 0 ? 1 : 0, scores);
}

}  // namespace

PartScores begin_scores(const ModelAndData& opened) {
  PartScores part;
  Scores& scores = part.scores;
  const OpenModel& model = *opened.model;
  const data::Dataset& dataset = opened.data->dataset();
  scores.samples = dataset.samples();
  scores.labels = model.is_by_sample() ? dataset.samples() : data::all_counted_labels(dataset);
  scores.is_of_tokens = dataset.shape().is_sequence();
  scores.has_accuracy = model.knows_right();
  scores.has_errors = model.label_is_number();
  if (const auto& own = model.own_loss()) {
    scores.has_weights = own->has_weights;
    scores.metric_names = own->metrics;
  }
  const uint32_t classes = scores.has_accuracy ? model.label_classes() : 0;
  scores.has_top5 =
      model.has_logits_of_classes() && classes >= kFewestClassesForTop && !scores.is_of_tokens;
  if (classes == 0 || scores.is_of_tokens || classes > Scores::kMostClasses) return part;
  scores.confusion.resize(size_t{classes} * classes);
  const auto& names = opened.trained.legend.class_names();
  for (uint32_t i = 0; i < classes; ++i)
    scores.class_names.push_back(static_cast<int>(i) < names.size() ? names[static_cast<int>(i)]
                                                                    : std::to_string(i));
  return part;
}

void add_batch(const OpenModel& model, const UsedBatch& batch, uint64_t samples, PartScores* part) {
  const int64_t* labels = batch.labels.data();
  const ModelOutput output = model.evaluate(batch.shape, batch.inputs.data(), labels, samples);
  if (!output.losses.defined()) return add_rows(output.logits, labels, part);
  const at::Tensor rows = sample_rows(output);
  const SlotScore score = add_samples(rows_of(output), rows.const_data_ptr<float>(), samples);
  Scores& scores = part->scores;
  ScoreSums& sums = part->batches.emplace_back();
  sums.loss = score.sum;
  sums.weight = score.weight;
  sums.metrics.assign(
      score.metrics.begin(),
      score.metrics.begin() + static_cast<std::ptrdiff_t>(scores.metric_names.size()));
  scores.correct += score.correct;
  if (model.has_logits_of_classes()) return count_rows(output.logits, labels, &scores);
  if (model.own_loss()) return;
  const at::Tensor target = model.target(batch.shape, labels, samples);
  if (scores.has_errors) add_errors(output.logits, target, &sums);
  if (output.right.defined()) count_signs(output.logits, target, &scores);
}

}  // namespace lockstep
