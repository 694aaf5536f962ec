#include "metrics/probes/check_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <string>

namespace lockstep {
namespace {

prometheus::Counter& checks(Families& families, const std::string& result) {
  return families.counter("lockstep_job_checks_total",
                          "Times that all members compared what they hold and compute.",
                          {{"result", result}});
}

}  // namespace

CheckProbe::CheckProbe(Families& families)
    : agreed_(checks(families, "agreed")),
      differed_(checks(families, "differed")),
      tainted_(families.gauge("lockstep_job_tainted",
                              "1: the lineage went on after members had differed.")) {}

void CheckProbe::agreed() {
  agreed_.Increment();
}

void CheckProbe::differed() {
  differed_.Increment();
}

void CheckProbe::set_tainted(bool tainted) {
  tainted_.Set(tainted ? 1 : 0);
}

}  // namespace lockstep
