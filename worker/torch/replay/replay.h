// Computes a past step again, alone on this machine. Replay starts from the newest checkpoint
// before the step, or from the initial weights, and runs all steps between, with all slots in one
// process. In exact mode every bit of every loss must equal the recorded bit, for any number of
// workers and through all their failures. Then replay looks into the step.
//
//   checkpoint ─▶ step ─▶ ... ─▶ state before step N ─▶ look (forward, slot by slot) ─▶ step N
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"
#include "worker/replay/replayed_sample.h"
#include "worker/replay/tensor_stats.h"

namespace lockstep {

struct ReplayRequest {
  std::string run_dir;
  Step step = 0;                 // counted from 1, as in history.jsonl
  std::optional<uint32_t> slot;  // look at this slot only; none: at all slots
  std::string batch_file;        // path of the batch; empty: RUN_DIR/replay-step-N.safetensors
};

struct ReplayReport {
  Step step = 0;  // counted from 1
  Epoch epoch = 0;
  std::string base;  // the checkpoint it began from; empty: the initial weights
  Step first = 0;    // the first step computed again, counted from 1
  double loss = 0;
  coordinator::StepEntry recorded;
  coordinator::SlotMapEntry slot_map;     // of the generation that did the step
  std::vector<std::string> differences;   // from the records; empty: the same bits
  std::vector<std::string> same_weights;  // checkpoints whose weights replay reproduced
  std::vector<std::string> notes;
  std::vector<TensorStats> gradients;    // of the parameters, for the whole step
  std::vector<TensorStats> activations;  // of the layers, over the slots looked at; input first
  std::vector<ReplayedSample> samples;   // of the slots looked at, largest loss first
  std::string batch_file;
};

Result<ReplayReport> replay(const ReplayRequest& request);

}  // namespace lockstep
