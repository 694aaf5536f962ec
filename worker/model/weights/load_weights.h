// Fills a model's state with the weights of files (model.init), after it compares all tensors:
// which match, which the files lack, which are left over there, which have another shape or type.
//
// Lockstep takes only a full match in silence. model.init_skip names exceptions: such a tensor of
// the model keeps its value, such a tensor of the files is left out.
//
// Values are F32, or F16 and BF16, which become float32 exactly. A counter (I64) that the files
// lack keeps its value. A tied tensor may have any of its names. A constant of the model must have
// its value in the files, if they have it.
//
// Thread-safety: free functions; one thread at a time for one state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/state_tensor.h"
#include "comm/run/job/job.pb.h"
#include "worker/model/spec.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

enum class WeightFate {
  kRead,
  kCut,       // the first rows of a longer tensor: GPT-2's positions
  kSkipped,   // model.init_skip names it
  kSame,      // a constant of the model, equal in the files
  kKept,      // the files do not have it, and need not: a constant or a counter
  kMissing,   // the files do not have it
  kLeftOver,  // the model does not have it
  kOtherShape,
  kOtherType,
  kOtherValue,  // a constant of the model, not equal in the files
};

struct WeightRow {
  std::string name;
  WeightFate fate = WeightFate::kRead;
  std::string in_model;  // shape; empty: the model does not have it
  std::string in_files;  // type and shape; empty: the files do not have it
};

// The fate of each tensor of the model, then of the files.
struct WeightTable {
  std::vector<WeightRow> rows;

  size_t count(WeightFate fate) const;
  // "60 of 62 tensors; 2 skipped: fc.weight, fc.bias".
  std::string summary() const;
  // A line a tensor.
  std::string text() const;
};

// Writes into `state`, whose section kOptimizer it leaves alone. kUsage if a pattern of
// model.init_skip matches nothing; kConfig if anything does not match and is not skipped; kBadData
// if the files changed meanwhile. After kBadData the content of `state` is undefined.
// `layout`: of the model that `state` belongs to.
Result<WeightTable> load_weights(const WeightFiles& files, const wire::ModelSpec& model,
                                 const ModelLayout& layout, std::span<const StateTensor> state);

// The same for weights that a run wrote, at `path`: everything must match. kBadData if not.
Status load_own_weights(const std::string& path, const wire::ModelSpec& model,
                        std::span<const StateTensor> state);

}  // namespace lockstep
