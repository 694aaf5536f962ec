// Why decide() did what it did: one value per outcome, asserted by tests, printed by the log. It
// says what became of the event, not what the event was.
#pragma once

#include <cstdint>

namespace lockstep::coordinator {

enum class Reason : uint8_t {
  kNothingDue,   // a tick, and no deadline had passed
  kClockJumped,  // the coordinator itself was asleep: judges nobody this time
  kHeard,        // liveness or progress noted
  kIgnored,      // true, but changes nothing (an old connection, an unknown process)

  // Membership
  kRegistered,         // has an id, others are awaited
  kReconnected,        // a known member is back; what it may have missed was pushed again
  kPrepared,           // all are there: a generation is prepared
  kPromised,           // counted, others are awaited
  kStarted,            // all promised: the generation is started
  kAlreadyCounted,     // a duplicate; changed nothing
  kEvictedUnpromised,  // the prepare deadline passed; the rest goes on in the next generation
  kDisconnected,       // control socket closed; may come back, or proof may come
  kSuspected,          // a peer says that another broke; proof is awaited
  kNewIdentity,        // known under an id that counts no more; is a newcomer now
  kRegrouped,          // the next generation is prepared without those who died
  kStandbyDied,        // it was not in the generation
  kAwaitsReplacement,  // died before training began; others are awaited
  kAwaitsProof,        // nobody holds the state; whether a worker is started again is awaited
  kSwitched,           // a planned change took effect
  kDrainRequested,     // it is to be left out
  kDrained,            // left out; waits to be sent away
  kCommandDone,
  kCommandRefused,

  // Work
  kRecordsAccepted,
  kRecordsVoid,  // acknowledged, not kept: no row covers them
  kEvalAccepted,
  kCheckpointAccepted,
  kCheckpointFailed,  // a periodic one; the older one stays
  kCheckpointVoid,    // acknowledged, not kept: it is no part of the lineage
  kCheckCounted,      // what members compute is compared when all have said it
  kChecked,           // they agree
  kExpelled,          // a place computed wrong, and nobody of it is here any more
  kStopRequested,
  kLeft,  // waits for the others

  // Refusals
  kRefusedUnregistered,  // no member speaks on this connection
  kRefusedStaleTerm,
  kRefusedStaleGeneration,
  kRefusedFuture,  // term or generation that we never gave out
  kRefusedOtherRun,
  kRefusedFull,    // the run has all its workers
  kRefusedMisfit,  // it would compute other bits, or reads other data
  kRefusedNotWriter,
  kRefusedGap,  // a batch is missing before this one; the last known was acked again
  kRefusedMalformed,
  kRefusedEnded,  // the run is over; told so

  // Ends of the run; kEndedTerm is followed by the next term
  kEndedTerm,
  kEndedFinished,
  kEndedStopped,
  kEndedMissingWorkers,
  kEndedFingerprint,
  kEndedFacts,
  kEndedLayout,
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

// The event had no effect on the run but to be answered.
bool is_refusal(Reason reason);
bool is_end(Reason reason);

}  // namespace lockstep::coordinator
