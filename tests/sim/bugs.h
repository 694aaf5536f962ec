// Bugs that the simulator can plant (comm/base/planted_bug.h). Each is one line at its place in the
// code, in the program sim-planted-bugs only. A test shows that the simulator finds every one of
// them.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>

namespace lockstep::sim {

enum class Bug : uint8_t {
  kNone,
  // coordinator/
  kAckBeforeCommit,           // messages leave before the commit that they depend on
  kHistoryBeforeCommit,       // history.jsonl says what the journal does not have yet
  kGenerationNotChecked,      // a promise to an older generation counts for the present one
  kResumeAfterSmallest,       // the start resumes after the smallest answer
  kStartBeforeAllAnswered,    // the start does not wait for the last answer
  kBatchNotKept,              // a batch is acknowledged but not journalled
  kPendingKeptOverRedo,       // reports of a redone step count for the redo
  kPlanForgottenAtTakeOver,   // a take-over does not know the planned change
  kTermNotCounted,            // a take-over keeps its predecessor's term
  kRowNotClosed,              // a start leaves the previous ledger row open
  kHoleNotSeen,               // a step whose records died with their owners counts as proven
  kCheckpointNotKept,         // a checkpoint is acknowledged but not journalled
  kSlotForgotten,             // a weighted assignment gives a slot to no member
  kLeastNamedGoes,            // of the suspects, the one that the fewest named is evicted
  kExpelledGoesOn,            // a place whose machine computes wrong takes part again
  kDamageNotCut,              // a damaged lineage goes on from its newest checkpoint
  kKilledAtOnce,              // a hung process has no time to wake up before it is killed
  kSkipNotTold,               // a start does not name the left-out slots
  kSkippedCountExpected,      // a step's record must count the left-out samples
  kSkipOfOneTurn,             // samples are left out of one of their batch's steps only
  kEvaluatedWithinBatch,      // what is due by steps comes between two steps of a batch
  kExperienceLost,            // a term forgets whom the previous term kept out for a while
  kEndForgotten,              // a take-over does not know that the run has ended
  kBestUntilRollbackDropped,  // only the best checkpoint of all is kept
  kWayToBestDropped,          // nothing leads back to a best evaluation whose checkpoint was lost
  kUnjudgedDropped,           // a checkpoint goes before the steps until it are judged
  kDroppedCounts,             // a resume takes a checkpoint that was dropped before it was undone
  kOpenNotCompared,           // while a script's facts are open, none is compared with the first
  kOpenTermTrains,            // an open term prepares a generation
  kOrderForgotten,            // a take-over does not know whom a command told to leave
  kOpenAfterTheCommit,        // a term does not look whether the journal has the facts already
  kUndoIgnored,               // a GPU that its agent found fit again stays unfit
  kNoticeNotRepeated,         // an agent tells a coordinator that comes back of no unfit GPU
  kScriptEndNotKept,          // an end by the script is not journalled
  // worker/session/
  kBatchLostOnReconnect,  // a sent but unacknowledged batch is not sent again
  kClosedGateLetsIn,      // an apply begins in a closed generation
  kNumbersOfOldIdentity,  // a new identity continues the old numbers of batches
  kPromiseBeforeClosed,   // the promise is sent before the host has closed
  kScriptEndNotRepeated,  // a worker that registers does not say that the script ended the run
  kEdgeRunAgain,          // a member that has run an edge runs it again after a death
  // The model of the training, by the rules of worker/
  kAnswerOutsideGate,         // the answer to prepare does not wait for an apply
  kNewIdentityKeepsState,     // a new identity still claims the old state for the lineage
  kPartialReusedInRedo,       // a redo takes partials of the aborted attempt
  kSwitchBeforeAllHaveHeard,  // a member that has heard of a change switches without votes
  kNoBarrierAtSwitch,         // the next generation rewrites memory that a slower one reads
  kTornTransferInstalled,     // a state received in part counts as whole
  kRewriteBeforeAllHaveRead,  // a range is rewritten when only its owner has read it
  kTrackOfJoinerFromStart,    // a joiner knows only the evaluations of its start, which is older
  kEvalReportedByOne,         // only the writer reports an evaluation, after its gate, and no start
                              // repeats it
  kEdgeBeforeItsEvaluation,   // an edge begins before its evaluation is in the journal
  kSkippedSlotCounted,        // a record counts the samples of a left-out slot
  kCount,
};

const char* bug_name(Bug bug);

// For the whole program.
void plant(Bug bug);
bool is_planted(Bug bug);

}  // namespace lockstep::sim
