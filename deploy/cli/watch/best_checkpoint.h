// The best checkpoint of a run (checkpoint.best), while the run goes on and after its end.
//
// Thread-safety: a free function; it blocks as RunSource does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

struct BestCheckpoint {
  std::string name;  // below RUN_DIR/checkpoints
  uint64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy = {};  // none: the loss knows no right predictions
};

// kUsage if the run keeps none, or none is evaluated yet. Other errors as RunSource.
Result<BestCheckpoint> find_best_checkpoint(const std::string& run_dir);

}  // namespace lockstep
