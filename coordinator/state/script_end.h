// Where the script of a run has ended it (PROTOCOL.md, "An end by the script"), as the journal
// keeps it: "10 of 27". The run is complete after 10 steps, of 27 that it was to have then.
//
// INVARIANTS
//  E1 It is journalled before any start with it, and before a checkpoint of its step counts.
//  E2 No member goes beyond it: the member that reported it stood there, and no member of its
//     generation had applied more.
//  E3 It goes only with the steps that led to it: where the run goes back for their sake (a bad
//     loss, a machine that computed wrong), and where a resume wants more steps than the run was to
//     have.
//
// Thread-safety: a plain value and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/base/ids.h"

namespace lockstep::coordinator {

struct ScriptEnd {
  Step step = 0;
  Step planned = 0;  // Options.total_steps when the script ended the run
  bool operator==(const ScriptEnd&) const = default;
};

std::string text_of(const ScriptEnd& end);
// The end among these settings (SettingEntry). Nothing: there is none.
std::optional<ScriptEnd> script_end_in(const std::map<std::string, std::string>& settings);

// Whether it still holds in a run that is to have `total_steps`.
inline bool holds_in(const ScriptEnd& end, Step total_steps) {
  return total_steps <= end.planned;
}
// Where a run of `total_steps` ends by its plan or its script.
inline Step last_step(const std::optional<ScriptEnd>& end, Step total_steps) {
  return end && end->step < total_steps ? end->step : total_steps;
}

}  // namespace lockstep::coordinator
