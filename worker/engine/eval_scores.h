// Evaluates a whole data set, spread over the ranks of a generation, with the same bits for any
// number of ranks: batches are fixed by the data, ranks take contiguous runs of them, and their
// scores are added in the order of batches.
//
// Thread-safety: the training thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "worker/engine/generation_view.h"
#include "worker/engine/loss_facts.h"
#include "worker/model/spec.h"

namespace lockstep {

// Sums over the samples of a batch, or of several.
struct EvalScore {
  double loss = 0;
  uint64_t correct = 0;
  uint64_t top5 = 0;
  uint64_t has_top5 = 0;  // 1: top5 was counted
  double weight = 0;
  std::array<double, kMostMetrics> metrics{};
  void add(const EvalScore& other);
};

struct EvalTask {
  uint64_t samples = 0;      // of the data set
  uint64_t batch = 0;        // samples of every batch but the last
  uint64_t predictions = 0;  // the sum of losses is divided by them; 0: by the sum of weights
  bool has_average = false;  // an average of the weights (train.ema) is scored, too
  uint32_t number = 0;       // of the evaluations of one state
};

void add_metric(const std::string& name, double value, wire::EvalReport* report);

// kUsage where a rank could not hold the scores of all batches.
Status check_eval_size(uint64_t samples, uint64_t batch);

// The samples that a rank scores.
struct EvalShare {
  uint64_t begin = 0;
  uint64_t end = 0;
};
EvalShare share_of(const EvalTask& task, uint64_t rank, uint64_t world);

// Scores samples [begin, end): the weights' score into scores[0], the average's into scores[1].
using ScoreBatch = std::function<Status(uint64_t begin, uint64_t end, std::span<EvalScore> scores)>;

// The report of the state after `applied` steps, without epoch and lr; the same on every rank.
// Errors: as `score`, and kAborted if the generation ends, which it checks between two batches.
// REQUIRES: every rank calls it with the same task, and the view has a Collective.
Result<wire::EvalReport> evaluate_together(const GenerationView& view, const LossFacts& loss,
                                           Step applied, const EvalTask& task,
                                           const ScoreBatch& score);

}  // namespace lockstep
