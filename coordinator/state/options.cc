#include "coordinator/state/options.h"

#include <algorithm>

#include "coordinator/state/identity.h"
#include "data/order/evaluation_due.h"

namespace lockstep::coordinator {

Options make_options(const wire::JobSpec& job, const wire::DataFacts& facts, std::string run_dir) {
  Options options;
  options.job = job;
  options.facts = facts;
  options.run_dir = std::move(run_dir);
  options.identity = identity_of(job, facts);
  options.shape = {facts.train_samples(),
                   options.is_batch_open() ? job.train().slots() : job.train().global_batch(),
                   job.train().slots()};
  options.total_steps =
      data::total_steps(options.shape, job.train().epochs(), job.train().max_steps());
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

bool is_evaluated_after(Step step, const Options& options) {
  return data::evaluation_due(data::evaluations_of(options.job, options.shape), step,
                              options.total_steps);
}

}  // namespace lockstep::coordinator
