// A worker's metrics at /metrics: the probes that observe it, and the text.
//
//   training thread ── StepProbe, ReductionProbe, EvalProbe, CheckpointProbe, MemberProbe ──┐
//   PhaseClock, /proc/self, FarDataProbe ── read by expose_text() ──────────────────────────┴→ text
//
// Thread-safety: as each probe documents. expose_text() from any thread, also while others use the
// probes.
//
// Invariants:
//  1. It never has more than kSeries series in the worker's life.
//  2. The labels run, node and local_rank are on every series and never change.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "comm/base/build_info.h"
#include "comm/base/clock.h"
#include "metrics/base/families.h"
#include "metrics/base/phase_clock.h"
#include "metrics/probes/checkpoint_probe.h"
#include "metrics/probes/data_probe.h"
#include "metrics/probes/eval_probe.h"
#include "metrics/probes/far_data_probe.h"
#include "metrics/probes/member_probe.h"
#include "metrics/probes/phase_probe.h"
#include "metrics/probes/process_probe.h"
#include "metrics/probes/reduction_probe.h"
#include "metrics/probes/step_probe.h"
#include "metrics/probes/tls_probe.h"

namespace lockstep {

struct WorkerTarget {
  std::string run;  // id of the run
  std::string node;
  uint32_t local_rank = 0;
};

class WorkerMetrics {
 public:
  static constexpr size_t kSeries = 64;

  // `phases` and `clock` outlive this object.
  WorkerMetrics(const WorkerTarget& target, const BuildInfo& build, const PhaseClock& phases,
                const Clock& clock);

  void step_applied(const AppliedStep& step);  // on the training thread
  ReductionProbe& reduction() { return reduction_; }
  MemberProbe& member() { return member_; }
  EvalProbe& eval() { return eval_; }
  CheckpointProbe& checkpoint() { return checkpoint_; }

  TlsProbe& tls() { return tls_; }
  DataProbe& data() { return data_; }
  FarDataProbe& far_data() { return far_data_; }

  // The exposition, of type kMetricsContentType.
  std::string expose_text();

 private:
  Families families_;
  InfoMetric build_;
  StepProbe step_;
  PhaseProbe phase_;
  ReductionProbe reduction_;
  MemberProbe member_;
  EvalProbe eval_;
  CheckpointProbe checkpoint_;
  ProcessProbe process_;
  TlsProbe tls_;
  DataProbe data_;
  FarDataProbe far_data_;
  std::mutex scrape_;
};

}  // namespace lockstep
