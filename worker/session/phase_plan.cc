#include "worker/session/phase_plan.h"

#include <algorithm>

#include "comm/base/planted_bug.h"
#include "comm/run/evaluation/evaluation_due.h"

namespace lockstep {

PhasePlan make_phase_plan(const wire::JobSpec& job, const wire::DataFacts& facts,
                          uint64_t total_steps, bool has_edges) {
  const RunShape shape{facts.train_samples(), job.train().global_batch(), job.train().slots(),
                       std::max(1u, facts.turns())};
  PhasePlan plan{evaluations_of(job, facts, shape),
                 total_steps,
                 best_by(job.checkpoint().best()),
                 job.train().patience(),
                 keeps_best(job.checkpoint().best()),
                 job.checkpoint().every_steps(),
                 has_edges};
  const Step planned = lockstep::total_steps(shape, job.train().epochs(), job.train().max_steps());
  if (total_steps < planned) plan.ended_at = total_steps;
  if (LOCKSTEP_BUG(kEvaluatedWithinBatch)) plan.evals.turns = 1;
  return plan;
}

ResumePoint fit_to_plan(ResumePoint at, const PhasePlan& plan) {
  if (at.step < plan.total_steps && is_after_edge(at.phase)) at.phase = Phase::kTrain;
  if (at.step >= plan.total_steps && at.phase == Phase::kTrain) at.phase = Phase::kCheckpoint;
  if (at.phase == Phase::kEval && !plan.evals.has_data) at.phase = plan.after_eval(at.step);
  if (at.phase == Phase::kEdge) at.phase = plan.after_eval(at.step);
  return at;
}

ResumePoint begin_of(const wire::Start& start, const std::optional<ResumePoint>& own,
                     const PhasePlan& plan) {
  ResumePoint at = fit_to_plan(from_wire(start.resume()), plan);
  if (!own || own->step != at.step || !plan.has_edge(at.step) || at.phase == Phase::kEval)
    return at;
  if (!is_after_edge(own->phase) || LOCKSTEP_BUG(kEdgeRunAgain)) {
    at.phase = Phase::kEdge;
  } else if (at.phase == Phase::kEdge) {
    at.phase = plan.after_edge(at.step);
  }
  return at;
}

EvalTrack track_at(const wire::Start& start, EvalTrack track, BestBy by) {
  const EvalTrack told = track_of(start.evals());
  if (told.last.step == start.resume().step()) track.add(told.last, by);
  track.kept = told.kept;
  return track;
}

std::optional<uint32_t> rank_of(const wire::Start& start, MemberId member) {
  const auto& members = start.members();
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const wire::MemberInfo& m) { return m.member() == member; });
  if (found == members.end()) return std::nullopt;
  return static_cast<uint32_t>(found - members.begin());
}

bool holds_state(const wire::Start& start, MemberId member) {
  const auto& holders = start.source().members();
  return std::find(holders.begin(), holders.end(), member) != holders.end();
}

bool joins(const wire::Start& start, MemberId member) {
  return start.source().members_size() > 0 && rank_of(start, member) && !holds_state(start, member);
}

SkipSet skips_of(const wire::Start& start) {
  SkipSet skips;
  for (const wire::SkippedSlots& entry : start.skipped()) {
    skips.add(entry.step(), entry.slots().begin(), entry.slots().end());
  }
  return skips;
}

std::optional<uint32_t> transfer_root(const wire::Start& start) {
  for (const wire::MemberInfo& m : start.members())
    if (joins(start, m.member())) return rank_of(start, start.source().members(0));
  return std::nullopt;
}

}  // namespace lockstep
