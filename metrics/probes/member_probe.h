// Shows a worker's member id and generation. Rank and member are labels of one series only, so no
// other series changes its identity when ranks change.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>

#include "comm/base/ids.h"
#include "metrics/base/families.h"

namespace lockstep {

class MemberProbe {
 public:
  explicit MemberProbe(Families& families);
  void started(Generation generation, MemberId member, uint32_t rank, uint32_t world_size);

 private:
  InfoMetric info_;
  prometheus::Gauge& generation_;
  prometheus::Gauge& world_size_;
};

}  // namespace lockstep
