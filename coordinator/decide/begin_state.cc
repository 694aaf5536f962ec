#include "coordinator/decide/begin_state.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "comm/base/planted_bug.h"
#include "coordinator/decide/take_over.h"

namespace lockstep::coordinator {
namespace {

uint32_t number_of(const std::string& text) {
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

// Takes the orders that people gave and were told would be carried out. Later terms obey them, too.
void take_orders(const Beginning& beginning, int64_t now_ms, State& state) {
  if (LOCKSTEP_BUG(kOrderForgotten)) return;
  for (const auto& [key, value] : beginning.settings) {
    if (key.starts_with(kKeptSetting))
      state.workers_of_node[key.substr(std::strlen(kKeptSetting))] = number_of(value);
    else if (key.starts_with(kLeavingSetting))
      state.ordered_to_leave.insert(
          std::strtoull(key.c_str() + std::strlen(kLeavingSetting), nullptr, 10));
  }
  const auto stop = beginning.settings.find(kStopSetting);
  if (stop == beginning.settings.end()) return;
  state.stop_ms = now_ms;
  state.stop_reason = stop->second;
}

// A coordinator that died after it had ended the run may not have told all members.
void take_end(const Beginning& beginning, State& state) {
  const auto end = beginning.settings.find("end");
  if (end == beginning.settings.end()) return;
  char* message = nullptr;
  state.run = RunState::kEnded;
  state.exit_code = static_cast<int>(std::strtol(end->second.c_str(), &message, 10));
  state.message = *message == ' ' ? message + 1 : message;
}

}  // namespace

State begin_state(const Beginning& beginning, int64_t now_ms, Experience experience) {
  State state;
  state.experience = std::move(experience);
  state.run_id = beginning.run_id;
  state.lineage_id = beginning.lineage_id;
  state.sequence = beginning.sequence;
  state.term = beginning.term;
  state.next_member = beginning.next_member;
  state.generation = beginning.generation;
  state.last_generation = beginning.generation;
  state.base = beginning.base;
  state.base_checkpoint = beginning.base_checkpoint;
  state.base_fingerprint = beginning.base_fingerprint;
  state.resume = beginning.base;
  state.completed = beginning.living ? beginning.completed : beginning.base.step;
  state.in_history = state.completed;
  state.fruitful_to = state.completed;
  state.evals = beginning.evals;
  state.checkpoints = beginning.checkpoints;
  state.stray = beginning.stray;
  state.dropped = beginning.dropped;
  for (const MemberEntry& entry : beginning.known)
    state.experience.known.try_emplace({entry.node, entry.pid}, 0);
  state.checks = beginning.checks;
  state.skips = beginning.skips;
  state.losses = beginning.losses;
  state.is_identity_stored = beginning.is_identity_stored;
  state.started_ms = now_ms;
  state.last_tick_ms = now_ms;
  const auto setting = [&](const char* key) {
    const auto found = beginning.settings.find(key);
    return found == beginning.settings.end() ? std::string() : found->second;
  };
  state.wanted_workers = number_of(setting("workers"));
  state.code_hash = setting(kCodeSetting);
  state.state_hash = setting(kStateSetting);
  state.script_end = script_end_in(beginning.settings);
  for (const auto& [key, value] : beginning.settings)
    if (key.starts_with(kNodeSetting))
      state.node_names.restore(key.substr(std::strlen(kNodeSetting)), value);
    else if (key.starts_with(kEmptiedSetting))
      state.emptied[key.substr(std::strlen(kEmptiedSetting))] = number_of(value);
  take_orders(beginning, now_ms, state);
  if (beginning.living) take_over(beginning, now_ms, state);
  take_end(beginning, state);
  return state;
}

}  // namespace lockstep::coordinator
