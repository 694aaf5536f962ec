// The status that a coordinator gives of its run (/api/v1/status), and how to ask for it.
//
// Thread-safety: values and free functions; ask_status() blocks for at most its timeout.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

struct EvalResult {
  uint64_t step = 0;
  uint64_t epoch = 0;
  std::optional<double> accuracy = {};  // none: the loss knows no right predictions
  double loss = 0;
  bool of_tokens = false;  // the perplexity of the loss says more than the accuracy
  std::optional<double> top5 = {};
};

struct RunStatus {
  std::string state;  // the coordinator's word: "gathering", "started", ...
  uint64_t step = 0;  // applied
  uint64_t total_steps = 0;
  uint64_t epoch = 0;  // of the next step, from 0
  uint64_t epochs = 0;
  uint64_t generation = 0;
  uint64_t members = 0;
  uint64_t workers = 0;       // wanted
  uint64_t global_batch = 0;  // 0: auto, and not found yet
  uint64_t slots = 0;
  uint64_t steps_per_epoch = 0;
  // Figures of the last ten seconds, as far as there are steps in them.
  std::optional<double> loss;  // the mean
  std::optional<double> accuracy;
  std::optional<double> samples_per_second;
  std::optional<double> samples_per_second_60s;
  std::optional<double> last_loss;  // of the last step
  std::optional<double> lr;         // of the last step
  bool of_tokens = false;           // the model learns from tokens
  std::optional<EvalResult> eval;   // the newest
  uint64_t evaluations = 0;         // so far
};

// Leaves absent or odd fields empty: a newer or older coordinator must not break the display.
RunStatus parse_status(const nlohmann::json& json);

// Asks the coordinator that coordinator.json names. kNoInput without that file; kUnavailable if no
// coordinator answers.
Result<nlohmann::json> ask_status(const std::string& run_dir, int64_t timeout_ms);

}  // namespace lockstep
