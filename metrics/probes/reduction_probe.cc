#include "metrics/probes/reduction_probe.h"

#include <prometheus/counter.h>

namespace lockstep {

ReductionProbe::ReductionProbe(Families& families)
    : buckets_(families.counter("lockstep_reduced_buckets_total",
                                "Gradient buckets reduced over all ranks.")),
      bytes_(families.counter("lockstep_reduced_bytes_total",
                              "Size of the gradient buckets reduced over all ranks.")) {}

void ReductionProbe::reduced(uint64_t bucket_bytes) {
  buckets_.Increment();
  bytes_.Increment(static_cast<double>(bucket_bytes));
}

}  // namespace lockstep
