// The result of an audit as text for people and as JSON for tools. Steps count from 1 here, as in
// history.jsonl, and so do epochs.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "coordinator/audit/audit.h"

namespace lockstep::coordinator {

// Ends with the line `epochs E, samples N: lost L, repeated R`. E counts whole epochs. If the
// policy left samples out, the line goes on with `, skipped S`, and N includes them.
std::string audit_text(const AuditReport& report);

// One line for each slot of a step.
std::string step_text(const AuditedStep& step);

// `steps`: the requested ones, from step_json().
std::string audit_json(const AuditReport& report, const std::vector<std::string>& steps);
std::string step_json(const AuditedStep& step);

}  // namespace lockstep::coordinator
