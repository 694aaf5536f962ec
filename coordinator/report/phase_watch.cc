#include "coordinator/report/phase_watch.h"

#include <numeric>

namespace lockstep::coordinator {

void PhaseSums::add(const PhaseSums& other) {
  steps += other.steps;
  samples += other.samples;
  for (size_t i = 0; i < us.size(); ++i) us[i] += other.us[i];
}

uint64_t PhaseSums::total_us() const {
  return std::accumulate(us.begin(), us.end(), uint64_t{0});
}

void PhaseWatch::add(int64_t now_ms, MemberId member, const wire::StepRecord& record) {
  Watched& watched = members_[member];
  const wire::PhaseTimes& t = record.times();
  watched.last = {1,
                  record.samples(),
                  {t.data_wait_us(), t.forward_us(), t.backward_us(), t.communication_us(),
                   t.optimizer_us(), t.other_us()}};
  watched.recent.add(now_ms, watched.last);
}

PhaseSums PhaseWatch::of(MemberId member, Span span, int64_t now_ms) const {
  const auto it = members_.find(member);
  if (it == members_.end()) return {};
  const PhaseSums sums = it->second.recent.of(span, now_ms);
  return sums.steps > 0 ? sums : it->second.last;
}

PhaseSums PhaseWatch::all(Span span, int64_t now_ms) const {
  PhaseSums sums;
  for (const auto& [member, watched] : members_) sums.add(of(member, span, now_ms));
  return sums;
}

}  // namespace lockstep::coordinator
