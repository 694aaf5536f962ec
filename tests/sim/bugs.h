// Bugs that can be planted (comm/base/planted_bug.h): each is one line at its place in the code, in
// the program sim-planted-bugs only. A test shows that the simulator finds every one of them.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>

namespace lockstep::sim {

enum class Bug : uint8_t {
  kNone,
  // coordinator/
  kAckBeforeCommit,          // messages leave before the commit that they depend on
  kHistoryBeforeCommit,      // history.jsonl says what the journal does not know yet
  kGenerationNotChecked,     // a promise to an older generation counts for the present one
  kResumeAfterSmallest,      // the start resumes after the smallest answer
  kStartBeforeAllAnswered,   // the start does not wait for the last answer
  kBatchNotKept,             // a batch is acknowledged and not journalled
  kPendingKeptOverRedo,      // reports of a step that is redone count for the redo
  kPlanForgottenAtTakeOver,  // a take-over does not know of the planned change
  kTermNotCounted,           // a take-over keeps its predecessor's term
  kRowNotClosed,             // a start leaves the ledger row before it open
  kHoleNotSeen,              // a step whose records died with their owners is taken for proven
  kCheckpointNotKept,        // a checkpoint is acknowledged and not journalled
  kSlotForgotten,            // a weighted assignment gives a slot to nobody
  kLeastNamedGoes,           // of those who are suspected the one whom the fewest named is evicted
  kExpelledGoesOn,           // whose machine computes wrong takes part again
  kDamageNotCut,             // a damaged lineage goes on from its newest checkpoint
  kKilledAtOnce,             // a process has no time to wake up before it is killed
  kSkipNotTold,              // a start does not name the slots that are left out
  kSkippedCountExpected,     // a step's record must count the samples that were left out
  kExperienceLost,           // a term forgets whom the one before it kept out for a while
  kEndForgotten,             // a take-over does not know that the run has ended
  kDroppedCounts,            // a resume takes a checkpoint that was dropped before it was undone
  // worker/session/
  kBatchLostOnReconnect,  // what was sent and not acknowledged is not sent again
  kClosedGateLetsIn,      // an apply begins in a closed generation
  kNumbersOfOldIdentity,  // a new identity numbers its batches on
  kPromiseBeforeClosed,   // the promise is sent before the host has closed
  // The model of the training, by the rules of worker/
  kAnswerOutsideGate,         // the answer to prepare does not wait for an apply
  kNewIdentityKeepsState,     // what it holds is still said to be of the lineage
  kPartialReusedInRedo,       // a redo takes partials of the aborted attempt
  kSwitchBeforeAllHaveHeard,  // who has heard of a change switches without the others' votes
  kNoBarrierAtSwitch,         // the next generation rewrites what a slower one still reads
  kTornTransferInstalled,     // a state received in part counts
  kRewriteBeforeAllHaveRead,  // a range is rewritten when only its owner has read it
  kSkippedSlotCounted,        // a record counts the samples of a slot that was left out
  kCount,
};

const char* bug_name(Bug bug);

// Of the whole program.
void plant(Bug bug);
bool is_planted(Bug bug);

}  // namespace lockstep::sim
