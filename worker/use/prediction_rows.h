// What a model gives for samples, as lines of a file:
//
//   csv    a header, then sample,name,class_1,probability_1,class_2,... with the likeliest first
//   jsonl  {"sample": 0, "name": "...", "top": [{"class": "cat", "index": 3, "probability": 0.9}]}
//   npy    probabilities of all classes, float32 (samples, classes)
//
// Probabilities are the softmax of the logits. On a tie the lower class comes first. Files of parts
// of the samples, put one behind the other, are the file of all samples, if the first part alone
// has the header.
//
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class PredictionFormat { kCsv, kJsonl, kNpy };

std::optional<PredictionFormat> prediction_format(std::string_view word);

class PredictionRows {
 public:
  // `class_names`: by class, or empty. REQUIRES: 0 < top <= classes.
  PredictionRows(PredictionFormat format, uint32_t classes, uint32_t top,
                 std::vector<std::string> class_names);

  std::string header(uint64_t samples) const;
  // Appends the row of a sample.
  void add(uint64_t sample, const std::string& name, std::span<const float> logits,
           std::string* out) const;

 private:
  std::string class_text(uint32_t index) const;

  const PredictionFormat format_;
  const uint32_t classes_;
  const uint32_t top_;
  const std::vector<std::string> class_names_;
};

}  // namespace lockstep
