// Observes the members of the job: term, generation, members by state, and evictions.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "metrics/base/families.h"

namespace lockstep {

class MembershipProbe {
 public:
  explicit MembershipProbe(Families& families);
  void term_began(Term term);
  void generation_started(Generation generation);
  // The number of members in every state, e.g. {"registered": 1, "active": 3}. A state that is
  // missing has none. States are few and fixed: each becomes a permanent series.
  void members(const std::map<std::string, uint64_t>& by_state);
  // Shows each reason at 0, because a rate does not see the event that a series begins with.
  void eviction_reasons(const std::vector<std::string>& reasons);
  void evicted(const std::string& reason);  // a typed reason's name, not a sentence
  void wanted(uint64_t workers);            // the number of workers that the run is to have

 private:
  prometheus::Counter& evictions(const std::string& reason);

  Families& families_;
  prometheus::Gauge& term_;
  prometheus::Gauge& generation_;
  prometheus::Counter& generations_total_;
  prometheus::Gauge& wanted_;
  std::mutex mutex_;
  std::map<std::string, prometheus::Gauge*> members_;
};

}  // namespace lockstep
