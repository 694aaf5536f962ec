// The beginning of tests of recovery.
#pragma once

#include <vector>

#include "comm/wire/resume_point.h"
#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {

inline std::vector<uint64_t> sources(const World& w) {
  const auto& members = w.started().source().members();
  return {members.begin(), members.end()};
}

// Three workers, `steps` reported by all.
inline void train_three(World& w, Step steps) {
  w.train();
  for (ConnectionId c = 1; c <= 3 && steps > 0; ++c) w.report(c, 1, 0, steps);
}

// Of 10 samples.
inline wire::Envelope eval_after(Step step, uint64_t batch, uint64_t correct = 0) {
  wire::Envelope envelope;
  envelope.mutable_step_records()->set_batch(batch);
  wire::EvalReport& eval = *envelope.mutable_step_records()->add_evals();
  eval.set_step(step);
  eval.set_samples(10);
  eval.set_correct(correct);
  return envelope;
}

// To generation 2, of a member that lived in generation 1.
inline wire::Envelope promise_after(Step step, Phase phase) {
  wire::Envelope envelope;
  wire::Promise& promise = *envelope.mutable_promise();
  promise.set_generation(2);
  promise.set_has_state(true);
  promise.set_lived(1);
  *promise.mutable_applied() = to_wire(ResumePoint{step, phase});
  return envelope;
}

}  // namespace lockstep::coordinator
