// Observes, on the coordinator, the comparisons of members that find silent corruption.
//
// Thread-safety: all calls from any thread.
#pragma once

#include "metrics/base/families.h"

namespace lockstep {

class CheckProbe {
 public:
  explicit CheckProbe(Families& families);
  void agreed();                   // once a check, if all members agree
  void differed();                 // once a check, and once for each place evicted for it
  void set_tainted(bool tainted);  // true if the lineage went on after members had differed

 private:
  prometheus::Counter& agreed_;
  prometheus::Counter& differed_;
  prometheus::Gauge& tainted_;
};

}  // namespace lockstep
