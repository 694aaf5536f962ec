#include "coordinator/state/reason.h"

namespace lockstep::coordinator {

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::kNothingDue:
      return "nothing_due";
    case Reason::kClockJumped:
      return "clock_jumped";
    case Reason::kHeard:
      return "heard";
    case Reason::kIgnored:
      return "ignored";
    case Reason::kRegistered:
      return "registered";
    case Reason::kReconnected:
      return "reconnected";
    case Reason::kPrepared:
      return "prepared";
    case Reason::kPromised:
      return "promised";
    case Reason::kStarted:
      return "started";
    case Reason::kAlreadyCounted:
      return "already_counted";
    case Reason::kEvictedUnpromised:
      return "evicted_unpromised";
    case Reason::kDisconnected:
      return "disconnected";
    case Reason::kSuspected:
      return "suspected";
    case Reason::kNewIdentity:
      return "new_identity";
    case Reason::kRegrouped:
      return "regrouped";
    case Reason::kStandbyDied:
      return "standby_died";
    case Reason::kAwaitsReplacement:
      return "awaits_replacement";
    case Reason::kAwaitsProof:
      return "awaits_proof";
    case Reason::kSwitched:
      return "switched";
    case Reason::kDrainRequested:
      return "drain_requested";
    case Reason::kDrained:
      return "drained";
    case Reason::kNoticed:
      return "noticed";
    case Reason::kCommandDone:
      return "command_done";
    case Reason::kCommandRefused:
      return "command_refused";
    case Reason::kRecordsAccepted:
      return "records_accepted";
    case Reason::kRecordsVoid:
      return "records_void";
    case Reason::kCheckpointWritten:
      return "checkpoint_written";
    case Reason::kCheckpointAccepted:
      return "checkpoint_accepted";
    case Reason::kCheckpointFailed:
      return "checkpoint_failed";
    case Reason::kCheckpointVoid:
      return "checkpoint_void";
    case Reason::kCheckpointLate:
      return "checkpoint_late";
    case Reason::kCheckCounted:
      return "check_counted";
    case Reason::kChecked:
      return "checked";
    case Reason::kExpelled:
      return "expelled";
    case Reason::kStopRequested:
      return "stop_requested";
    case Reason::kScriptEnded:
      return "script_ended";
    case Reason::kLeft:
      return "left";
    case Reason::kRefusedUnregistered:
      return "refused_unregistered";
    case Reason::kRefusedStaleTerm:
      return "refused_stale_term";
    case Reason::kRefusedStaleGeneration:
      return "refused_stale_generation";
    case Reason::kRefusedFuture:
      return "refused_future";
    case Reason::kRefusedOtherRun:
      return "refused_other_run";
    case Reason::kRefusedGone:
      return "refused_gone";
    case Reason::kRefusedFull:
      return "refused_full";
    case Reason::kRefusedMisfit:
      return "refused_misfit";
    case Reason::kRefusedNotWriter:
      return "refused_not_writer";
    case Reason::kRefusedGap:
      return "refused_gap";
    case Reason::kRefusedMalformed:
      return "refused_malformed";
    case Reason::kRefusedEnded:
      return "refused_ended";
    case Reason::kEndedTerm:
      return "ended_term";
    case Reason::kEndedFinished:
      return "ended_finished";
    case Reason::kEndedStopped:
      return "ended_stopped";
    case Reason::kEndedMissingWorkers:
      return "ended_missing_workers";
    case Reason::kEndedFingerprint:
      return "ended_fingerprint";
    case Reason::kEndedFruitless:
      return "ended_fruitless";
    case Reason::kEndedFacts:
      return "ended_facts";
    case Reason::kEndedScript:
      return "ended_script";
    case Reason::kEndedLayout:
      return "ended_layout";
    case Reason::kEndedSharedGpu:
      return "ended_shared_gpu";
    case Reason::kEndedTooFew:
      return "ended_too_few";
    case Reason::kEndedDeath:
      return "ended_death";
    case Reason::kEndedPoison:
      return "ended_poison";
    case Reason::kEndedBadLoss:
      return "ended_bad_loss";
    case Reason::kEndedWorkerFailed:
      return "ended_worker_failed";
    case Reason::kEndedCorruption:
      return "ended_corruption";
    case Reason::kEndedCheckpointFailed:
      return "ended_checkpoint_failed";
    case Reason::kEndedNoCheckpoint:
      return "ended_no_checkpoint";
    case Reason::kEndedGracePassed:
      return "ended_grace_passed";
    case Reason::kEndedLeaveTimeout:
      return "ended_leave_timeout";
  }
  return "unknown";
}

bool is_refusal(Reason reason) {
  return reason >= Reason::kRefusedUnregistered && reason <= Reason::kRefusedEnded;
}

bool is_end(Reason reason) {
  return reason >= Reason::kEndedTerm;
}

}  // namespace lockstep::coordinator
