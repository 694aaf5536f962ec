// Looks into one slot of a step: its batch, and the output of every layer. Changes nothing.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/step_plan.h"
#include "data/dataset/dataset.h"
#include "data/loader/loader.h"
#include "worker/engine/engine.h"
#include "worker/model/spec.h"
#include "worker/replay/replayed_sample.h"
#include "worker/replay/tensor_stats.h"

namespace lockstep {

struct ModelOutput;

// The parts that SlotLook keeps of the batches that it has looked at, one after another.
struct LookedAt {
  std::vector<TensorStats> activations;
  std::vector<ReplayedSample> samples;  // in the order of the batch
  std::vector<float> images;            // of images only, like logits: sequences have too many
  std::vector<float> logits;
  std::vector<int64_t> tokens;                 // of sequences only
  std::vector<int64_t> labels;                 // one an image, or one a token of a sequence
  std::vector<std::vector<std::byte>> fields;  // by FieldList::specs(), sample after sample
  bool are_mixed = false;  // labels and images are mixed with others of their slot
};

class SlotLook {
 public:
  // All arguments outlive the object. `engine` stands before `step`, in a generation. `model`: the
  // layout of the engine's model.
  SlotLook(const wire::JobSpec& job, const data::Dataset& dataset, const ModelLayout& model,
           Engine& engine, Step step);

  Status look(uint32_t slot, LookedAt* out);

 private:
  Result<std::unique_ptr<data::Loader>> load(uint32_t slot) const;
  void keep(const data::Batch& batch, const ModelOutput& output, LookedAt* out);

  const wire::JobSpec& job_;
  const data::Dataset& dataset_;
  const ModelLayout& model_;
  Engine& engine_;
  const Step step_;
  const RunShape shape_;
};

}  // namespace lockstep
