// A checkpoint counts once its manifest's hash is in the journal; only then may older ones go.
#include <algorithm>

#include "coordinator/decide_internal.h"
#include "worker/checkpoint/store.h"

namespace lockstep::coordinator {
namespace {

constexpr uint32_t kFewestKept = 2;

Reason failed(Turn& turn, const Member& member, const wire::CheckpointReport& message) {
  State& state = turn.state;
  // No ack ends such a report, so the worker sends it again whenever it reconnects.
  const bool is_new = state.failed_names.insert(message.name()).second;
  if (!is_new && !message.final()) return Reason::kAlreadyCounted;
  ++state.failed_checkpoints;
  const std::string what = "the checkpoint of step " + std::to_string(message.step()) +
                           " was not written by " + describe(state, member) + ": " +
                           message.error();
  if (message.final()) {
    turn.note(LogLine::Level::kInfo, "checkpoint_failed", what);
    end_run(turn, 70, "the last checkpoint failed: " + what + "; " + what_remains(turn));
    return Reason::kEndedCheckpointFailed;
  }
  turn.note(LogLine::Level::kWarn, "checkpoint_failed",
            what + "; training goes on, the older " + "checkpoints stay");
  return Reason::kCheckpointFailed;
}

void drop(Turn& turn, CheckpointEntry entry, wire::CheckpointAck* ack) {
  if (entry.state == CheckpointState::kComplete) entry.state = CheckpointState::kDropped;
  ack->add_drop(entry.name);
  turn.persist(std::move(entry));
}

void acknowledge(Turn& turn, const Member& member, const wire::CheckpointReport& message) {
  State& state = turn.state;
  if (message.final() && !state.end_ms) state.end_ms = turn.now_ms;
  wire::Envelope envelope;
  wire::CheckpointAck* ack = envelope.mutable_checkpoint_ack();
  ack->set_name(message.name());
  const size_t keep = std::max(kFewestKept, turn.options.job.checkpoint().keep());
  while (state.checkpoints.size() > keep) {
    drop(turn, std::move(state.checkpoints.front()), ack);
    state.checkpoints.erase(state.checkpoints.begin());
  }
  for (CheckpointEntry& entry : state.stray) drop(turn, std::move(entry), ack);
  state.stray.clear();
  turn.send(member.connection, std::move(envelope));
}

}  // namespace

Reason on_checkpoint(Turn& turn, Member& member, const wire::CheckpointReport& message) {
  State& state = turn.state;
  if (member.id != state.writer) return Reason::kRefusedNotWriter;
  if (!message.error().empty()) return failed(turn, member, message);
  const auto name = parse_checkpoint_name(message.name());
  if (!name || name->step != message.step() || name->generation != state.generation ||
      name->member != member.id || message.step() > turn.options.total_steps ||
      message.manifest_sha256().empty()) {
    return Reason::kRefusedMalformed;
  }
  const auto same = std::find_if(state.checkpoints.begin(), state.checkpoints.end(),
                                 [&](const auto& c) { return c.name == message.name(); });
  if (same != state.checkpoints.end()) {
    acknowledge(turn, member, message);
    return Reason::kAlreadyCounted;
  }
  if (!state.checkpoints.empty() && state.checkpoints.back().step > message.step()) {
    return Reason::kRefusedMalformed;  // steps never go back within a generation
  }
  const CheckpointEntry entry{message.name(),
                              message.step(),
                              state.generation,
                              member.id,
                              message.manifest_sha256(),
                              message.weights_sha256(),
                              message.bytes(),
                              message.final(),
                              CheckpointState::kComplete};
  turn.persist(entry);
  turn.log(LogLine::Level::kInfo, "checkpoint_written", "checkpoint " + entry.name);
  state.checkpoints.push_back(entry);
  acknowledge(turn, member, message);
  return Reason::kCheckpointAccepted;
}

}  // namespace lockstep::coordinator
