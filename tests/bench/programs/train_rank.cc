#include "tests/bench/programs/train_rank.h"

#include <chrono>

#include "comm/collectives/bucket_plan.h"
#include "worker/engine/engine.h"

namespace lockstep::bench {
namespace {

void add(const wire::PhaseTimes& t, wire::PhaseTimes* sum) {
  sum->set_data_wait_us(sum->data_wait_us() + t.data_wait_us());
  sum->set_forward_us(sum->forward_us() + t.forward_us());
  sum->set_backward_us(sum->backward_us() + t.backward_us());
  sum->set_communication_us(sum->communication_us() + t.communication_us());
  sum->set_optimizer_us(sum->optimizer_us() + t.optimizer_us());
  sum->set_other_us(sum->other_us() + t.other_us());
}

Result<TrainReport> time_steps(Engine& engine, const TrainOptions& options) {
  TrainReport report;
  for (uint64_t i = 0; i < options.warmup_steps; ++i) {
    auto outcome = engine.step();
    if (!outcome.is_ok()) return outcome.status();
  }
  const auto start = std::chrono::steady_clock::now();
  for (; report.steps < options.steps; ++report.steps) {
    auto outcome = engine.step();
    if (!outcome.is_ok()) return outcome.status();
    report.loss = outcome->record.loss();
    add(outcome->record.times(), &report.phases);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

Result<TrainReport> train_rank(const TrainOptions& options, const RankBackend& backend) {
  const wire::JobSpec job = make_job(options);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<data::Dataset> dataset,
                            open_training_data(options, job));
  const uint32_t slots = job.train().slots();
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(job, *dataset, nullptr, slots, backend.make_buffer, backend.gpu));
  LOCKSTEP_ASSIGN_OR_RETURN(Collective * collective, backend.connect(engine->gradient_buffer()));
  GenerationView view{.generation = 1,
                      .collective = collective,
                      .slot_runs = {},
                      .bucket_bounds = {},
                      .total_steps = options.warmup_steps + options.steps,
                      .ends = {},
                      .skips = {}};
  for (uint32_t r = 0; r < options.ranks; ++r)
    view.slot_runs.push_back({slots * r / options.ranks, slots * (r + 1) / options.ranks});
  LOCKSTEP_ASSIGN_OR_RETURN(
      view.bucket_bounds,
      plan_buckets(engine->tensor_bounds(), engine->gradient_buffer().layout().elements,
                   static_cast<uint64_t>(options.bucket_mb * 1024 * 1024)));
  LOCKSTEP_RETURN_IF_ERROR(engine->begin_generation(view, {}));
  return time_steps(*engine, options);
}

}  // namespace lockstep::bench
