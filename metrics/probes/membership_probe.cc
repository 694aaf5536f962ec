#include "metrics/probes/membership_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace lockstep {

MembershipProbe::MembershipProbe(Families& families)
    : families_(families),
      term_(families.gauge("lockstep_job_term", "Incarnation of the coordinator, from 1.")),
      generation_(
          families.gauge("lockstep_job_generation", "Number of the last generation started.")),
      generations_total_(families.counter("lockstep_job_generations_total",
                                          "Generations started by this coordinator.")),
      wanted_(families.gauge("lockstep_job_workers_wanted", "Workers that the run should have.")) {}

void MembershipProbe::term_began(Term term) {
  term_.Set(static_cast<double>(term));
}

void MembershipProbe::generation_started(Generation generation) {
  generation_.Set(static_cast<double>(generation));
  generations_total_.Increment();
}

void MembershipProbe::members(const std::map<std::string, uint64_t>& by_state) {
  std::lock_guard lock(mutex_);
  for (const auto& [state, gauge] : members_) {
    if (!by_state.contains(state)) gauge->Set(0);
  }
  for (const auto& [state, count] : by_state) {
    prometheus::Gauge*& gauge = members_[state];
    if (gauge == nullptr) {
      gauge =
          &families_.gauge("lockstep_job_members", "Members in each state.", {{"state", state}});
    }
    gauge->Set(static_cast<double>(count));
  }
}

prometheus::Counter& MembershipProbe::evictions(const std::string& reason) {
  return families_.counter("lockstep_job_evictions_total", "Members evicted from the job.",
                           {{"reason", reason}});
}

void MembershipProbe::eviction_reasons(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons) evictions(reason);
}

void MembershipProbe::evicted(const std::string& reason) {
  evictions(reason).Increment();
}

void MembershipProbe::wanted(uint64_t workers) {
  wanted_.Set(static_cast<double>(workers));
}

}  // namespace lockstep
