// How a term of the coordinator begins: what the journal and the checkpoints say becomes a
// Beginning, and the new term, with all that follows from it, is journalled in one commit.
//
// No files and no clock of its own, so that production (begin.h) and the simulator run the same
// code.
//
// INVARIANTS
//  T1 Whatever is refused has changed nothing.
//  T2 A commit lost to a crash leaves the journal such that the same mode, tried again, does right.
//  T3 A lineage is cut only by a term that begins from a checkpoint, never by a take-over.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/log.h"
#include "coordinator/journal/journal.h"
#include "coordinator/report/run_stats.h"
#include "coordinator/state/options.h"
#include "coordinator/state/state.h"
#include "coordinator/term/resume.h"

namespace lockstep::coordinator {

enum class BeginMode : uint8_t {
  kFirst,     // of a run that is not there yet
  kResume,    // every process is new: from the newest checkpoint
  kTakeOver,  // only the coordinator is new: the started generation goes on
  kNextTerm,  // of the same process, after EndTerm (action.h): from the newest checkpoint
};

struct TermRequest {
  BeginMode mode = BeginMode::kFirst;
  uint32_t pid = 0;
  std::string job_json;  // the whole job, for the journal
  int64_t wall_ms = 0;   // for people
  Term term = 0;         // claimed for it, more than the journal's last; 0: one more
};

struct BegunTerm {
  Beginning beginning;
  RunStats stats;               // of the steps that survive so far
  int64_t earlier_wall_ms = 0;  // of the terms before
  bool is_complete = false;     // the last step is done and its checkpoint verified
};

// `contents` is what `journal` holds; `options` are of this term, with the slots resolved.
// kUsage: there is a run already (kFirst), another identity, or fewer steps than are done.
// A take-over of a run without a started generation begins like a resume.
Result<BegunTerm> begin_term(Journal& journal, const JournalContents& contents,
                             CheckpointShelf& shelf, const Options& options,
                             const TermRequest& request, Logger& logger);

// Whether the run is complete, or what begin_term() would refuse; changes nothing.
Result<bool> check_term(Journal& journal, const JournalContents& contents, CheckpointShelf& shelf,
                        const Options& options, BeginMode mode, Logger& logger);

}  // namespace lockstep::coordinator
