// Observes on the coordinator what comparing the members with each other shows: silent corruption.
//
// Thread-safety: all calls from any thread.
#pragma once

#include "metrics/base/families.h"

namespace lockstep {

class CheckProbe {
 public:
  explicit CheckProbe(Families& families);
  void agreed();                   // all members, once a check
  void differed();                 // once a check, and for each place that is put out for it
  void set_tainted(bool tainted);  // the lineage went on after members had differed

 private:
  prometheus::Counter& agreed_;
  prometheus::Counter& differed_;
  prometheus::Gauge& tainted_;
};

}  // namespace lockstep
