// The losses of a job (train.loss), one row each, and what a loss needs of model and data. The
// arithmetic: worker/torch/engine/sample_loss.cc.
//
// Thread-safety: constants and pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/text/nearest.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

enum class LossKind : uint8_t { kCrossEntropy, kBce, kMse, kL1, kHuber };

struct LossRow {
  LossKind kind = LossKind::kCrossEntropy;
  std::string_view name;                           // train.loss
  std::string_view about;                          // for the help of train.loss
  std::array<std::string_view, 4> elsewhere = {};  // other programs' words for it
  bool knows_right = false;                        // tells right predictions from wrong ones
  bool compares_numbers =
      false;                 // an output with the label as a number, which is what predict gives
  bool is_by_sample = true;  // the mean is over samples, and not over labels
};

inline constexpr std::string_view kOfNumbers = "one output against the label as a number";

inline constexpr LossRow kLosses[] = {
    {.kind = LossKind::kCrossEntropy,
     .name = "cross_entropy",
     .about = "a logit for each class, unless the model has a loss of its own",
     .elsewhere = {"ce", "crossentropy", "nll", "softmax"},
     .knows_right = true,
     .is_by_sample = false},
    {.kind = LossKind::kBce,
     .name = "bce",
     .about = "one logit against a label of 0 or 1",
     .elsewhere = {"bce_with_logits", "binary_cross_entropy"},
     .knows_right = true},
    {.kind = LossKind::kMse,
     .name = "mse",
     .about = kOfNumbers,
     .elsewhere = {"l2", "mean_squared_error"},
     .compares_numbers = true},
    {.kind = LossKind::kL1,
     .name = "l1",
     .about = kOfNumbers,
     .elsewhere = {"mae"},
     .compares_numbers = true},
    {.kind = LossKind::kHuber,
     .name = "huber",
     .about = kOfNumbers,
     .elsewhere = {"smooth_l1"},
     .compares_numbers = true},
};

inline const LossRow& loss_row(LossKind kind) {
  return *std::ranges::find(kLosses, kind, &LossRow::kind);
}

// REQUIRES: the name is one of the key's values, or empty.
inline LossKind loss_kind(const wire::TrainSpec& train) {
  const auto* found = std::ranges::find(kLosses, train.loss(), &LossRow::name);
  return found == std::end(kLosses) ? LossKind::kCrossEntropy : found->kind;
}

// "a, b or c": the losses of which it is true, as in losses_that(&LossRow::compares_numbers).
inline std::string losses_that(bool LossRow::*is_true) {
  std::vector<std::string_view> names;
  for (const LossRow& row : kLosses)
    if (row.*is_true) names.push_back(row.name);
  return join_names(names);
}

}  // namespace lockstep
