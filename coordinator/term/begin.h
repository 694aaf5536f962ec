// From a run directory to a coordinator that can serve: inputs, journal, term (term.h), history.
// Everything here happens before the first connection.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/alive.h"
#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal.h"
#include "coordinator/run_dir/run_dir.h"
#include "coordinator/state/options.h"
#include "coordinator/term/seat.h"
#include "coordinator/term/term.h"

namespace lockstep::coordinator {

struct Begun {
  Options options;
  BegunTerm term;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<History> history;
};

// `run_dir` is absolute. What is refused (term.h) has changed no file but the log, and claimed a
// term at most. kRefused when another coordinator has the run. `alive` is called every now and then
// while something takes long: a checkpoint of many GB is read whole.
Result<Begun> begin_run(const std::string& run_dir, BeginMode mode, Seat& seat, const Clock& clock,
                        Logger& logger, const AliveFn& alive = {});

// What a resume with this job and these data would find: is the run complete, its last checkpoint
// whole, or would it be refused? Changes no file; false when the run never got as far as a journal.
// REQUIRES: the journal is locked.
Result<bool> check_resume(const std::string& run_dir, const wire::JobSpec& job,
                          const wire::DataFacts& facts, Logger& logger);

}  // namespace lockstep::coordinator
