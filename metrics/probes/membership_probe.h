// Observes who is in the job: term, generation, members by state, and who was put out.
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
  // How many members there are in every state, e.g. {"registered": 1, "active": 3}; a state that is
  // not named has none. States are few and fixed: each is a series for good.
  void members(const std::map<std::string, uint64_t>& by_state);
  // Shows each of them, at 0: a rate sees no first event of a series that begins with it.
  void eviction_reasons(const std::vector<std::string>& reasons);
  void evicted(const std::string& reason);  // a typed reason's name, not a sentence
  void wanted(uint64_t workers);            // that the run is to have

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
