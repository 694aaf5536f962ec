// Observes checkpoints: on a worker the ones that it wrote, on the coordinator those in the
// journal.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/ids.h"
#include "metrics/base/families.h"

namespace lockstep {

class CheckpointProbe {
 public:
  // Names begin with `prefix`, e.g. "lockstep_" on a worker.
  CheckpointProbe(Families& families, const std::string& prefix);
  void complete(Step step, uint64_t bytes);
  void failed();
  void newest(Step step);  // an earlier process completed it

 private:
  prometheus::Counter& complete_;
  prometheus::Counter& failed_;
  prometheus::Counter& bytes_;
  prometheus::Gauge& step_;
};

}  // namespace lockstep
