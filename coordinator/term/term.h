// Begins a term of the coordinator: makes a Beginning from the journal and the checkpoints, and
// journals the new term with all its consequences in one commit.
//
// It has no files and no clock of its own, so that production (begin.h) and the simulator run the
// same code.
//
// INVARIANTS
//  T1 A refusal changes nothing.
//  T2 If a crash loses the commit, another attempt in the same mode does the right thing.
//  T3 Only a term that begins from a checkpoint cuts the lineage, never a take-over.
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
  kFirst,     // the run does not exist yet
  kResume,    // every process is new: from the newest checkpoint
  kTakeOver,  // only the coordinator is new: the started generation goes on
  kNextTerm,  // in the same process, after EndTerm (action.h): from the newest checkpoint
};

struct TermRequest {
  BeginMode mode = BeginMode::kFirst;
  uint32_t pid = 0;
  std::string job_json;  // the whole job, for the journal
  BothClocks now;        // for the journal
  Term term = 0;         // claimed, newer than the journal's last; 0: the journal's last plus one
};

struct BegunTerm {
  Beginning beginning;
  RunStats stats;               // of the surviving steps
  int64_t earlier_wall_ms = 0;  // of the earlier terms
  bool is_complete = false;     // the last step is done and its checkpoint verified
};

// `contents` is the content of `journal`. `options` are this term's, with resolved slots. kBadData
// if the journal may not go on with the checkpoints on disk (lineage.h). kUsage if there is a run
// already (kFirst), if the identity differs, or if the run should end before the steps that are
// done. A take-over without a started generation begins like a resume.
Result<BegunTerm> begin_term(Journal& journal, const JournalContents& contents,
                             CheckpointShelf& shelf, const Options& options,
                             const TermRequest& request, Logger& logger);

// Whether the run is complete, or the error with which begin_term() would refuse. Changes nothing.
Result<bool> check_term(Journal& journal, const JournalContents& contents, CheckpointShelf& shelf,
                        const Options& options, BeginMode mode, Logger& logger);

}  // namespace lockstep::coordinator
