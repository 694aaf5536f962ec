#include "worker/torch/inference/measured_pass.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "comm/base/labels.h"
#include "comm/environment/standard_streams.h"
#include "worker/torch/inference/score_batch.h"

namespace lockstep {
namespace {

constexpr double kGoldenShare = 0.6180339887498949;
constexpr double kLittleTime = 2;  // seconds: below it passes are repeated, to time them better
constexpr size_t kMostPasses = 7;
constexpr double kSilentSeconds = 2;
constexpr double kPauseSeconds = 20;  // between lines of progress

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class MeasuredPass {
 public:
  MeasuredPass(const std::vector<const OpenModel*>& models, UsedData& data,
               const MeasureLimits& limits)
      : models_(models),
        data_(data),
        limits_(limits),
        samples_(data.dataset().samples()),
        batches_((samples_ + limits.batch - 1) / limits.batch),
        scores_(models.size(), std::vector<PartScores>(batches_)),
        passes_(models.size()) {}

  Result<nlohmann::ordered_json> run() {
    LOCKSTEP_RETURN_IF_ERROR(read(0));
    for (const OpenModel* model : models_) forward(*model);  // the first is slower: not timed
    const double begun = seconds_now();
    uint64_t visited = 0;
    for (; visited < batches_; ++visited) {
      if (visited > 0 && seconds_now() - begun > limits_.seconds) break;
      LOCKSTEP_RETURN_IF_ERROR(read(spread_batch(visited, batches_)));
      LOCKSTEP_RETURN_IF_ERROR(look(/*scores=*/true));
      tell(seconds_now() - begun);
    }
    end_pass();
    while (passes_[0].size() < kMostPasses && seconds_now() - begun < kLittleTime) {
      for (uint64_t i = 0; i < visited; ++i) {
        LOCKSTEP_RETURN_IF_ERROR(read(spread_batch(i, batches_)));
        LOCKSTEP_RETURN_IF_ERROR(look(/*scores=*/false));
      }
      end_pass();
    }
    return figures();
  }

 private:
  Status read(uint64_t batch) {
    at_ = batch;
    const uint64_t begin = batch * limits_.batch;
    size_ = std::min(begin + limits_.batch, samples_) - begin;
    return data_.read(begin, begin + size_, &batch_);
  }

  void forward(const OpenModel& model) const {
    (void)model.evaluate(batch_.shape, batch_.inputs.data(), batch_.labels.data(), size_);
  }

  // The batch by every model, in another order each time.
  Status look(bool scores) {
    pass_seconds_.resize(models_.size(), 0);
    for (size_t i = 0; i < models_.size(); ++i) {
      const size_t m = (i + turn_) % models_.size();
      const double begun = seconds_now();
      forward(*models_[m]);
      pass_seconds_[m] += seconds_now() - begun;
      if (scores) LOCKSTEP_RETURN_IF_ERROR(add(*models_[m], &scores_[m][at_]));
    }
    ++turn_;
    pass_samples_ += size_;
    if (scores) seen_ += size_;
    return Status::ok();
  }

  // As an evaluation of the run does.
  Status add(const OpenModel& model, PartScores* part) const {
    Scores& scores = part->scores;
    const auto labels = std::span(batch_.labels).first(size_ * batch_.shape.labels());
    const auto classes = int64_t{model.label_classes()};
    const auto is_none = [classes](int64_t label) {
      return label != kIgnoredLabel && (label < 0 || label >= classes);
    };
    if (classes > 0 && std::ranges::any_of(labels, is_none))
      return {Code::kBadData, data_.name() +
                                  " has a label that is no class of the model; name the data that "
                                  "the model was trained for"};
    scores.samples = size_;
    scores.labels =
        model.is_by_sample()
            ? size_
            : labels.size() - static_cast<size_t>(std::ranges::count(labels, kIgnoredLabel));
    scores.has_accuracy = model.knows_right();
    if (const auto& own = model.own_loss()) {
      scores.has_weights = own->has_weights;
      scores.metric_names = own->metrics;
    }
    add_batch(model, batch_, size_, part);
    return Status::ok();
  }

  void end_pass() {
    for (size_t m = 0; m < models_.size(); ++m)
      passes_[m].push_back(static_cast<double>(pass_samples_) / pass_seconds_[m]);
    pass_seconds_.clear();
    pass_samples_ = 0;
  }

  void tell(double seconds) {
    if (seconds < next_line_) return;
    next_line_ = seconds + kPauseSeconds;
    print_error("measuring: %llu of %llu samples\n", static_cast<unsigned long long>(seen_),
                static_cast<unsigned long long>(samples_));
  }

  nlohmann::ordered_json figures() const {
    nlohmann::ordered_json out = {{"samples", seen_}, {"of", samples_}};
    out["models"] = nlohmann::ordered_json::array();
    for (size_t m = 0; m < models_.size(); ++m) {
      std::vector<PartScores> seen;
      uint64_t labels = 0;
      for (const PartScores& batch : scores_[m]) {
        if (batch.batches.empty()) continue;
        labels += batch.scores.labels;
        seen.push_back(batch);
      }
      nlohmann::ordered_json row;
      if (labels > 0) {
        Scores whole = joined(seen);
        whole.labels = labels;
        row["loss"] = whole.loss();
        if (whole.has_accuracy)
          row["accuracy"] = static_cast<double>(whole.correct) / static_cast<double>(labels);
      }
      row["samples_per_second"] = median(passes_[m]);
      out["models"].push_back(row);
    }
    return out;
  }

  const std::vector<const OpenModel*>& models_;
  UsedData& data_;
  const MeasureLimits limits_;
  const uint64_t samples_;
  const uint64_t batches_;
  std::vector<std::vector<PartScores>> scores_;  // by model, by batch
  std::vector<std::vector<double>> passes_;      // samples/s, by model
  UsedBatch batch_;
  uint64_t at_ = 0;    // the number of batch_
  uint64_t size_ = 0;  // its samples
  uint64_t seen_ = 0;
  size_t turn_ = 0;
  std::vector<double> pass_seconds_;
  uint64_t pass_samples_ = 0;
  double next_line_ = kSilentSeconds;
};

}  // namespace

uint64_t spread_batch(uint64_t visit, uint64_t batches) {
  auto step = static_cast<uint64_t>(std::llround(static_cast<double>(batches) * kGoldenShare));
  step = std::max<uint64_t>(step, 1);
  while (std::gcd(step, batches) != 1) ++step;
  return visit % batches * step % batches;
}

Result<nlohmann::ordered_json> measure_models(const std::vector<const OpenModel*>& models,
                                              UsedData& data, const MeasureLimits& limits) {
  return MeasuredPass(models, data, limits).run();
}

}  // namespace lockstep
