// Prepares a coordinator from a run directory: inputs, journal, term (term.h), history. All of this
// happens before the first connection.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/alive.h"
#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "coordinator/journal/eval_file.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal.h"
#include "coordinator/state/options.h"
#include "coordinator/term/seat.h"
#include "coordinator/term/term.h"

namespace lockstep::coordinator {

struct Begun {
  Options options;
  BegunTerm term;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<History> history;
  std::unique_ptr<EvalFile> evals;
};

// `run_dir` is absolute. After a refusal (term.h) no file but the log has changed, except that a
// term may be claimed. kRefused if another coordinator has the run. Calls `alive` now and then
// during long work: it reads a checkpoint of many GB whole.
Result<Begun> begin_run(const std::string& run_dir, BeginMode mode, Seat& seat, const Clock& clock,
                        Logger& logger, const AliveFn& alive = {});

// kBadData if the journal may not go on with the checkpoints on disk (lineage.h). `is_alive`:
// workers of the run train. Changes no file. REQUIRES: the journal is locked.
Status check_journal(const std::string& run_dir, const std::string& journal, bool is_alive,
                     JournalCheck check = JournalCheck::kWhole, const AliveFn& alive = {});

// The job of the newest term, for a run directory that has lost its job.pb. kNoInput if no term
// began. REQUIRES: the journal is locked.
Result<wire::JobSpec> journaled_job(const std::string& run_dir);

std::string job_to_json(const wire::JobSpec& job);

// Tells what a resume with this job and this data would find: true if the run is complete and its
// last checkpoint whole, an error if the resume would be refused, false if the run has no journal
// or is not complete. Changes no file. REQUIRES: the journal is locked.
Result<bool> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                          const wire::DataFacts& facts, Logger& logger);

}  // namespace lockstep::coordinator
