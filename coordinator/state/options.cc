#include "coordinator/state/options.h"

#include <algorithm>

#include "comm/base/planted_bug.h"
#include "comm/run/evaluation/edge.h"
#include "comm/run/evaluation/evaluation_due.h"
#include "coordinator/state/identity.h"

namespace lockstep::coordinator {

Options make_options(const wire::JobSpec& job, const wire::DataFacts& facts, std::string run_dir) {
  Options options;
  options.job = job;
  options.facts = facts;
  options.run_dir = std::move(run_dir);
  options.identity = identity_of(job, facts);
  const uint64_t batch = options.is_batch_open() ? job.train().slots() : job.train().global_batch();
  options.shape = {facts.open() ? batch : facts.train_samples(), batch, job.train().slots(),
                   std::max(1u, facts.turns())};
  options.total_steps = total_steps(options.shape, job.train().epochs(), job.train().max_steps());
  options.workers = job.cluster().workers();
  options.min_workers = std::max(1u, job.cluster().min_workers());
  const auto ms = [](uint32_t seconds) { return int64_t{seconds} * 1000; };
  options.start_timeout_ms = ms(job.cluster().start_timeout_s());
  options.min_wait_ms = ms(job.cluster().min_wait_s());
  options.lease_ms = ms(job.cluster().lease_s());
  options.hang_ms = ms(job.cluster().hang_s());
  options.prepare_timeout_ms = options.lease_ms;
  options.bar_ms = kBarLeases * options.lease_ms;
  options.grace_ms = ms(job.cluster().grace_s());
  // A final checkpoint may take as long as one after a signal may.
  options.end_timeout_ms = std::max(options.end_timeout_ms, options.grace_ms);
  return options;
}

Result<Options> resolve_options(wire::JobSpec job, wire::DataFacts facts,
                                const std::vector<IdentityEntry>& stored, std::string run_dir) {
  job.mutable_train()->set_slots(resolve_slots(job, stored));
  job.mutable_train()->set_global_batch(stored_global_batch(job, stored));
  if (facts.open() && !is_script(job.model()))
    return Status(Code::kBadData, run_dir +
                                      "/facts.pb does not say what the data are, although the run "
                                      "is no script's; resume from an undamaged copy of the run, "
                                      "or choose another --run-dir");
  const bool has_begun = !stored.empty() && !LOCKSTEP_BUG(kOpenAfterTheCommit);
  if (facts.open() && has_begun) {
    LOCKSTEP_ASSIGN_OR_RETURN(facts, stored_facts(stored));
  }
  Options options = make_options(job, facts, std::move(run_dir));
  if (!is_script(job.model()) || !has_begun) return options;
  options.script = script_identity(stored);
  options.identity.insert(options.identity.end(), options.script.begin(), options.script.end());
  options.has_edges = has_edges(options.script);
  return options;
}

bool has_edge_after(Step step, Step end, const Options& options) {
  return options.has_edges &&
         edge_due(evaluations_of(options.job, options.facts, options.shape), step, end);
}

PossibleEnds possible_ends(const Options& options, const std::optional<ScriptEnd>& end) {
  return {evaluations_of(options.job, options.facts, options.shape),
          last_step(end, options.total_steps), options.job.train().patience() > 0};
}

bool is_evaluated_after(Step step, const Options& options, const std::optional<ScriptEnd>& end) {
  return evaluation_due(evaluations_of(options.job, options.facts, options.shape), step,
                        last_step(end, options.total_steps));
}

}  // namespace lockstep::coordinator
