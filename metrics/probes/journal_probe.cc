#include "metrics/probes/journal_probe.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

namespace lockstep {

JournalProbe::JournalProbe(Families& families)
    : commit_seconds_(families.histogram("lockstep_journal_commit_seconds",
                                         "Duration of a commit, with its fsync.",
                                         {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1})),
      entries_(families.counter("lockstep_journal_entries_total", "Entries committed.")),
      batches_(
          families.counter("lockstep_record_batches_total", "Batches of step records received.")),
      records_(families.counter("lockstep_records_total", "Step records received.")) {}

void JournalProbe::committed(double seconds, uint64_t entries) {
  commit_seconds_.Observe(seconds);
  entries_.Increment(static_cast<double>(entries));
}

void JournalProbe::batch_received(uint64_t records) {
  batches_.Increment();
  records_.Increment(static_cast<double>(records));
}

}  // namespace lockstep
