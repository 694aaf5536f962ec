// The text of the line that shows a live run. run_reporter.h draws it.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "deploy/cli/watch/run_status.h"

namespace lockstep {

struct LineStyle {
  size_t width = 80;  // columns of the terminal; the text is shorter
  bool unicode = true;
};

// One line that fits: it leaves out the least important parts if need be.
std::string live_line(const RunStatus& status, const LineStyle& style);

// The same facts for a log file.
std::string plain_line(const RunStatus& status);

// "epoch 1/5: test accuracy 87.12 %, loss 0.3512"; within an epoch "epoch 1/5, step 300: ...".
std::string eval_line(const EvalResult& eval, uint64_t epochs, uint64_t steps_per_epoch);

// The batch that train.global_batch auto has become: "global batch 512 (auto): 8 slots of 64, 117
// steps an epoch".
std::string batch_line(const RunStatus& status);

// The figures that the live line has no room for: "samples/s in 60 s 2,100, lr 0.002, test loss
// 0.3512, accuracy 87.12 % (step 938)".
std::string figures_line(const RunStatus& status);

// Seconds to the end at the present speed; negative if unknown.
double seconds_left(const RunStatus& status);

}  // namespace lockstep
