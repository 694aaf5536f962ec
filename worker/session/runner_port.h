// The reports of the training thread to the coordinator. Session implements it; tests have other
// implementations.
//
// Thread-safety: all calls from any thread.
#pragma once

#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/status.h"
#include "comm/wire/control.pb.h"
#include "worker/session/record_queue.h"

namespace lockstep {

class RunnerPort {
 public:
  virtual ~RunnerPort() = default;
  virtual Status add_record(Generation generation, wire::StepRecord record) = 0;
  virtual Status report_eval(Generation generation, wire::EvalReport report) = 0;
  virtual void report_checkpoint(Generation generation, wire::CheckpointReport report) = 0;
  virtual void report_check(Generation generation, wire::CheckReport report) = 0;
  // `member` 0: a member, but it is not known which.
  virtual void suspect(Generation generation, MemberId member, std::string what) = 0;
  // The script has ended the run after `step` steps, which this worker has applied. Call it before
  // reporting any evaluation or checkpoint of that step.
  virtual void report_end(Generation generation, Step step) = 0;
  // A planned change took effect. From here on this worker lives in `generation`, which began at
  // `since`. Call it before reporting anything of `generation`.
  virtual void switched(Generation generation, ResumePoint since) = 0;
  // FINISHED, STOPPED and DRAINED carry an ok status.
  virtual void leave(Generation generation, wire::Leave::Reason reason, Status status,
                     std::optional<ResumePoint> applied) = 0;
  // Whether the journal has all records and evaluations that were added so far.
  virtual bool are_recorded() const = 0;
  // The records that a checkpoint's manifest must carry.
  virtual Result<RecordQueue::Unacknowledged> unacknowledged() const = 0;
};

}  // namespace lockstep
