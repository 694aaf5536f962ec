#include "metrics/probes/data_probe.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

namespace lockstep {

DataProbe::DataProbe(Families& families)
    : reader_(families, "lockstep_data_reader_info",
              "How samples are read. pread, mmap: ahead of their use; mapped: batches use the "
              "mapped file; on_use: each when it is used."),
      reads_(families.counter("lockstep_data_reads_total",
                              "Samples that were read ahead of their use.")),
      ahead_bytes_(
          families.gauge("lockstep_data_read_ahead_bytes",
                         "Size of the samples asked for or read that no batch has used yet.")) {}

void DataProbe::show(const DataRead& read) {
  const std::lock_guard lock(mutex_);
  if (!read.reader.empty()) reader_.set({{"reader", read.reader}});
  raise_to(reads_, static_cast<double>(read.reads));
  ahead_bytes_.Set(static_cast<double>(read.ahead_bytes));
}

}  // namespace lockstep
