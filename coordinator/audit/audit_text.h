// What an audit found, for people and for tools. Steps are numbered from 1 here, as in
// history.jsonl, and epochs too.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "coordinator/audit/audit.h"

namespace lockstep::coordinator {

// Ends with the line `epochs E, samples N: lost L, repeated R`; E counts whole epochs. Where
// samples were left out by policy, the line goes on with `, skipped S`; they are some of the N.
std::string audit_text(const AuditReport& report);

// One line for each slot of a step.
std::string step_text(const AuditedStep& step);

// `steps`: those that were asked for, as step_json() gives them.
std::string audit_json(const AuditReport& report, const std::vector<std::string>& steps);
std::string step_json(const AuditedStep& step);

}  // namespace lockstep::coordinator
