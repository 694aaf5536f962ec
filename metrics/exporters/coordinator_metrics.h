// The coordinator's metrics at /metrics: the probes that observe the job, and the text. Names of
// the whole job begin with lockstep_job_, so that users do not add them up with a worker's own
// by mistake.
//
// Thread-safety: as each probe documents. expose_text() from any thread, also while others use the
// probes.
#pragma once

#include <mutex>
#include <string>

#include "comm/base/build_info.h"
#include "metrics/base/families.h"
#include "metrics/probes/check_probe.h"
#include "metrics/probes/checkpoint_probe.h"
#include "metrics/probes/eval_probe.h"
#include "metrics/probes/job_probe.h"
#include "metrics/probes/journal_probe.h"
#include "metrics/probes/membership_probe.h"
#include "metrics/probes/process_probe.h"
#include "metrics/probes/rank_probe.h"
#include "metrics/probes/tls_probe.h"

namespace lockstep {

class CoordinatorMetrics {
 public:
  // `run`: id of the run, a label of every series.
  CoordinatorMetrics(const std::string& run, const BuildInfo& build);

  JobProbe& job() { return job_; }
  MembershipProbe& membership() { return membership_; }
  JournalProbe& journal() { return journal_; }
  EvalProbe& eval() { return eval_; }
  CheckpointProbe& checkpoint() { return checkpoint_; }
  CheckProbe& check() { return check_; }
  RankProbe& ranks() { return ranks_; }
  TlsProbe& tls() { return tls_; }

  // The exposition, of type kMetricsContentType.
  std::string expose_text();

 private:
  Families families_;
  InfoMetric build_;
  JobProbe job_;
  MembershipProbe membership_;
  JournalProbe journal_;
  EvalProbe eval_;
  CheckpointProbe checkpoint_;
  CheckProbe check_;
  RankProbe ranks_;
  ProcessProbe process_;
  TlsProbe tls_;
  std::mutex scrape_;
};

}  // namespace lockstep
