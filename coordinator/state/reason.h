// The outcome of an event that decide() judged, one value each. Tests assert it, and the log prints
// it.
#pragma once

#include <cstdint>

namespace lockstep::coordinator {

enum class Reason : uint8_t {
  kNothingDue,   // a tick, and no deadline had passed
  kClockJumped,  // the coordinator itself was asleep, so it judges no member this time
  kHeard,        // liveness or progress noted
  kIgnored,      // true, but changes nothing (an old connection, an unknown process)

  // Membership
  kRegistered,         // the member has an id; the run waits for others
  kReconnected,        // a known member is back, and gets again what it may have missed
  kPrepared,           // all members are here, and a generation is prepared
  kPromised,           // counted; the run waits for others
  kStarted,            // all have promised, and the generation is started
  kAlreadyCounted,     // a duplicate that changed nothing
  kEvictedUnpromised,  // the prepare deadline passed; the rest goes on in the next generation
  kDisconnected,       // control socket closed; the member may come back, or proof may come
  kSuspected,          // a member reports that another broke; proof may come
  kNewIdentity,        // its old id does not count any more; it is a newcomer now
  kRegrouped,          // the next generation is prepared without the dead
  kStandbyDied,        // the dead member was not in the generation
  kAwaitsReplacement,  // a member died before training began; the run waits for others
  kAwaitsProof,        // no member holds the state; an agent may start a worker again
  kSwitched,           // a planned change took effect
  kDrainRequested,     // the next planned change leaves the member out
  kDrained,            // left out; waits for its Goodbye
  kNoticed,            // a place is unfit from now on, or fit again
  kCommandDone,
  kCommandRefused,

  // Work
  kRecordsAccepted,
  kRecordsVoid,        // acknowledged and not kept, because no row covers them
  kCheckpointWritten,  // its writer says so; the coordinator has not read its manifest yet
  kCheckpointAccepted,
  kCheckpointFailed,  // a periodic one; the older one stays
  kCheckpointVoid,    // acknowledged and not kept, because it is not in the lineage
  kCheckpointLate,    // acknowledged and not kept, because later ones have taken its place
  kCheckCounted,      // other members have not reported yet
  kChecked,           // all members agree
  kExpelled,          // a place computed wrong, and its workers are gone
  kStopRequested,
  kScriptEnded,  // the run is complete after this step
  kLeft,         // waits for the others

  // Refusals
  kRefusedUnregistered,  // the connection belongs to no member
  kRefusedStaleTerm,
  kRefusedStaleGeneration,
  kRefusedFuture,  // a term or generation that does not exist yet
  kRefusedOtherRun,
  kRefusedGone,    // its agent has told that the process has ended
  kRefusedFull,    // the run has all its workers
  kRefusedMisfit,  // it would compute other bits, or reads other data
  kRefusedNotWriter,
  kRefusedGap,  // a batch is missing before this one; the last known one is acknowledged again
  kRefusedMalformed,
  kRefusedEnded,  // the run is over, and the sender hears so

  // Ends of the run; kEndedTerm is followed by the next term
  kEndedTerm,
  kEndedFinished,
  kEndedStopped,
  kEndedMissingWorkers,
  kEndedFingerprint,
  kEndedFruitless,
  kEndedFacts,
  kEndedScript,
  kEndedLayout,
  kEndedSharedGpu,
  kEndedTooFew,
  kEndedDeath,
  kEndedPoison,
  kEndedBadLoss,
  kEndedWorkerFailed,
  kEndedCorruption,
  kEndedCheckpointFailed,
  kEndedNoCheckpoint,
  kEndedGracePassed,
  kEndedLeaveTimeout,
};

const char* reason_name(Reason reason);

// The event got an answer and had no other effect on the run.
bool is_refusal(Reason reason);
bool is_end(Reason reason);

}  // namespace lockstep::coordinator
