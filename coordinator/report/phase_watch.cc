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

void PhaseWatch::add(MemberId member, const wire::StepRecord& record) {
  Window& window = windows_[member];
  if (window.now.steps >= kWindowSteps || window.now.total_us() >= kWindowUs) {
    window.before = window.now;
    window.now = {};
  }
  const wire::PhaseTimes& t = record.times();
  window.now.add({1,
                  record.samples(),
                  {t.data_wait_us(), t.forward_us(), t.backward_us(), t.communication_us(),
                   t.optimizer_us(), t.other_us()}});
}

PhaseSums PhaseWatch::of(MemberId member) const {
  const auto it = windows_.find(member);
  if (it == windows_.end()) return {};
  PhaseSums sums = it->second.before;
  sums.add(it->second.now);
  return sums;
}

PhaseSums PhaseWatch::all() const {
  PhaseSums sums;
  for (const auto& [member, window] : windows_) sums.add(of(member));
  return sums;
}

}  // namespace lockstep::coordinator
