// The predictions of a model for samples, as lines of a file:
//
//   csv    a header, then sample,name,class_1,probability_1,class_2,... with the likeliest first;
//          of numbers sample,name,value
//   jsonl  {"sample": 0, "name": "...", "top": [{"class": "cat", "index": 3, "probability": 0.9}]};
//          of numbers {"sample": 0, "name": "...", "value": 4.5}
//   npy    probabilities of all classes or labels, float32 (samples, classes); numbers, float32
//          (samples);
//          maps of classes, uint8 or, for more than 256 classes, int32 (samples, height, width);
//          logits, float32 (samples, ...)
//
// Probabilities are the softmax of the logits. Where a sample may have any number of labels, each
// probability is the sigmoid of its logit. One logit for two classes is the logit of class 1, and
// the logit of class 0 is 0: the probability is its sigmoid. A map of one logit at each place is of
// class 1 where the logit is above 0. On a tie the lower class comes first. The files of the parts
// of the samples, joined in order, are the file of all samples, if the first part alone has the
// header.
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

enum class PredictionKind {
  kClasses,  // of classes of the whole sample, of which one is right
  kLabels,   // of labels, each of which is right or not
  kNumber,   // one value
  kMap,      // the class at each place: npy only
  kLogits,   // as the model gives them: npy only
};

// The form of a sample's predictions.
struct PredictionContent {
  PredictionKind kind = PredictionKind::kClasses;
  std::vector<int64_t> shape;  // of a sample's logits: (classes), or (classes, height, width)
  uint32_t classes = 0;        // kClasses, kLabels: 2 with one logit of kClasses
  uint32_t top = 0;            // kClasses, kLabels: 0 < top <= classes
  std::vector<std::string> class_names;  // by class, or empty
};

class PredictionRows {
 public:
  PredictionRows(PredictionFormat format, PredictionContent content);

  std::string header(uint64_t samples) const;
  // Appends the row of a sample. REQUIRES: as many logits as `shape` says.
  void add(uint64_t sample, const std::string& name, std::span<const float> logits,
           std::string* out) const;
  // For a sample that could not be read: no row, but its place in an array: NaN, in a map 255 or
  // -1.
  void add_unread(std::string* out) const;

 private:
  std::string class_text(uint32_t index) const;
  std::string npy_header_of(uint64_t samples) const;
  bool is_wide() const { return content_.shape[0] > 256; }  // a class takes more than a byte
  void add_map(std::span<const float> logits, std::string* out) const;
  void add_number(uint64_t sample, const std::string& name, float value, std::string* out) const;
  void add_classes(uint64_t sample, const std::string& name, const std::vector<double>& shares,
                   std::string* out) const;

  const PredictionFormat format_;
  const PredictionContent content_;
};

}  // namespace lockstep
