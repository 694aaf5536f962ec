// From a run directory to a coordinator that can serve: lock, inputs, journal, identity, resume,
// history. Everything here happens before the first connection.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "coordinator/history.h"
#include "coordinator/journal.h"
#include "coordinator/options.h"
#include "coordinator/run_dir.h"
#include "coordinator/state.h"

namespace lockstep::coordinator {

struct Begun {
  std::string token;
  Options options;
  Beginning beginning;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<History> history;
};

// `run_dir` is absolute and locked. kUsage: an earlier run and no `resume`, or another identity.
Result<Begun> begin_run(const std::string& run_dir, bool resume, const Clock& clock,
                        Logger& logger);

}  // namespace lockstep::coordinator
