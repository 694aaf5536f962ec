// Evaluations by a function of the script: batches go out as EVAL orders, scores come back, and
// engine/eval_scores.h adds them.
//
// Thread-safety: the training thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"
#include "worker/engine/generation_view.h"
#include "worker/script/core.h"

namespace lockstep {

// What a script has declared of one evaluation.
struct ScriptEvalFacts {
  std::string name;      // empty for the first
  uint64_t samples = 0;  // > 0
  std::string fingerprint;
  std::vector<std::string> metrics;  // names
  bool knows_right = false;          // it counts right predictions
};

// All evaluations of a script, in the order in which it declared them. The first is the run's: its
// loss decides what is best. The others are reported with it, as metrics of the first.
using ScriptEvals = std::vector<ScriptEvalFacts>;

// The metrics that an evaluation after the first reports: "name/loss", "name/accuracy" if it counts
// right predictions, and "name/METRIC".
std::vector<std::string> reported_metrics(const ScriptEvalFacts& facts);

// Where the job has evaluation data for the script: "named" by data.eval.path, "found" in the
// training data or held out from them; empty: nowhere.
std::string_view where_eval_data_are(const wire::DataSpec& data);

// kUsage if a key of the job needs a value that the script does not evaluate, for metrics that a
// report cannot hold, for two of one name, and for too many samples.
Status check_script_evals(const ScriptEvals& evals, const wire::JobSpec& job);

// Gives an order to Python. An error: the script failed, or the run is over.
using AskScript = std::function<Result<ls_reply>(const ls_order&)>;

// As Engine::evaluate(), without epoch and lr. kBadData if an evaluation counted nothing. REQUIRES:
// `evals` are not empty, the view has a Collective.
Result<wire::EvalReport> evaluate_script(const ScriptEvals& evals, const wire::JobSpec& job,
                                         const GenerationView& view, Step applied,
                                         const AskScript& ask);

}  // namespace lockstep
