// The audit of a run directory that no coordinator writes to any more.
//
// Thread-safety: a free function. It holds the journal's lock while it reads, shared with other
// readers.
#pragma once

#include <functional>
#include <string>

#include "comm/base/status.h"
#include "coordinator/audit/audit.h"

namespace lockstep::coordinator {

// kUsage: the run still goes on; kBadData: the journal is lost or damaged; kNoInput: no run there.
Result<AuditReport> audit_ended_run(const std::string& run_dir,
                                    const std::function<void(const AuditedStep&)>& on_step = {});

}  // namespace lockstep::coordinator
