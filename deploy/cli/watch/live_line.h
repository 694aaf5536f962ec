// The line that shows a run while it goes on. Pure text; who draws it is reporter.h.
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "deploy/cli/watch/run_status.h"

namespace lockstep {

struct LineStyle {
  size_t width = 80;  // columns of the terminal; the text is always shorter
  bool unicode = true;
};

// One line that fits: what matters least is left out where it would not.
std::string live_line(const RunStatus& status, const LineStyle& style);

// The same facts for a log file.
std::string plain_line(const RunStatus& status);

// "epoch 1/5: test accuracy 87.12 %, loss 0.3512".
std::string eval_line(const EvalResult& eval, uint64_t epochs);

// Seconds to the end at the present speed; negative when not known.
double seconds_left(const RunStatus& status);

}  // namespace lockstep
