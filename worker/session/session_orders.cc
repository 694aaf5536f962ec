// The coordinator's messages to a session, and the fences before them.
#include <algorithm>

#include "comm/base/planted_bug.h"
#include "comm/wire/exit_status.h"
#include "worker/session/session_impl.h"

namespace lockstep {

void Session::Impl::stale(const char* what, Generation generation) {
  logger.warn("fenced",
              std::string("dropped a ") + what + " that is not for the present generation",
              {{"its_generation", generation},
               {"promised", promised},
               {"started", started},
               {"state", state_name(state)}});
}

// N1. A higher term is a coordinator that was started again.
bool Session::Impl::fence_term(const wire::Envelope& message) {
  if (message.term() < term) {
    logger.warn("fenced", "dropped a message of an older coordinator",
                {{"its_term", message.term()}, {"term", term}});
    return false;
  }
  if (message.term() > term && term != 0)
    logger.info("new_term", "the coordinator was started again", {{"term", message.term()}});
  term = message.term();
  return true;
}

void Session::Impl::on_message(wire::Envelope&& message) {
  const auto keep_alive = shared_from_this();
  if (state == State::kEnded || !fence_term(message)) return;
  const Generation generation = message.generation();
  switch (message.body_case()) {
    case wire::Envelope::kRegistered:
      return on_registered(message.registered());
    case wire::Envelope::kPrepare:
      return on_prepare(generation);
    case wire::Envelope::kStart:
      return on_start(generation, message.start());
    case wire::Envelope::kRecordsAck:
      fail_if_error(
          records.acknowledge(message.records_ack().batch(), message.records_ack().sequence()));
      if (state != State::kEnded) host.on_recorded();
      return pump();
    case wire::Envelope::kCheckpointAck:
      return on_checkpoint_ack(message.checkpoint_ack());
    case wire::Envelope::kEvict:
      if (message.evict().save_stack()) host.on_hang();
      return finish(Status(Code::kInternal, "evicted: " + message.evict().reason()),
                    exit_code(Status(Code::kInternal, "")), Cause::kCoordinators);
    case wire::Envelope::kGoodbye:
      return on_goodbye(message.goodbye());
    case wire::Envelope::kStop:
      return host.on_stop(message.stop().reason());
    case wire::Envelope::kPlanned:
      return on_planned(generation, message.planned().next());
    case wire::Envelope::kBeat:
      return;
    default:
      logger.warn("unknown_message", "dropped a message that this worker does not know",
                  {{"kind", static_cast<int>(message.body_case())}});
  }
}

void Session::Impl::on_registered(const wire::Registered& message) {
  if (member != 0 && member != message.member()) {
    logger.info("new_identity", "the coordinator took this worker in as a new member",
                {{"was", member}, {"member", message.member()}});
    become_new();
    if (state == State::kEnded) return;
  }
  member = message.member();
  registered = true;
  loop.cancel(std::exchange(join_timer, 0));
  logger.info("registered", "registered", {{"member", member}, {"term", term}});
  const Status fits = host.on_registered(message);
  if (!fits.is_ok()) return finish(fits, exit_code(fits));
  if (state == State::kJoining) state = State::kMember;
  pump();
}

// N6. `promised` stays: no number of a generation is used twice.
void Session::Impl::become_new() {
  forgotten = std::max({promised, started, planned});
  started = 0;
  planned = 0;
  closing = false;
  state = State::kMember;
  outbox.clear();
  leave.reset();
  switch_report.reset();
  end_report.reset();
  suspicion.reset();
  const Status cleared = records.clear(forgotten);
  if (!cleared.is_ok()) return fail_if_error(cleared);
  host.on_new_identity(forgotten);
}

void Session::Impl::on_prepare(Generation generation) {
  if (generation < promised || generation <= started) return stale("prepare", generation);
  if (generation == promised) {
    // The coordinator repeats it after a reconnect: the answer is the same, once there is one.
    if (!closing) on_closed(generation, host.standing());
    return;
  }
  promised = generation;
  if (planned < generation) planned = 0;
  suspicion.reset();
  closing = true;
  state = State::kClosing;
  // N4. A failure stays a failure, whatever comes after it.
  if (leave && leave->envelope.leave().reason() != wire::Leave::FAILED) leave.reset();
  logger.info("closing", "closing everything before generation " + std::to_string(generation),
              {{"generation", generation}});
  if (LOCKSTEP_BUG(kPromiseBeforeClosed)) on_closed(generation, host.standing());
  host.on_close(generation - 1, [weak = weak_from_this(), generation](const Standing& standing) {
    auto alive = weak.lock();
    // Else a newer one was prepared, or this worker is another member by now.
    if (alive && alive->closing && generation == alive->promised)
      alive->on_closed(generation, standing);
  });
}

void Session::Impl::on_closed(Generation generation, const Standing& standing) {
  if (state == State::kEnded) return;
  closing = false;
  if (started < promised) state = State::kPromised;
  wire::Envelope envelope;
  wire::Promise& promise = *envelope.mutable_promise();
  promise.set_generation(generation);
  promise.set_has_state(standing.applied.has_value());
  if (standing.applied) {
    *promise.mutable_applied() = to_wire(*standing.applied);
    promise.set_ends_at(standing.ends_at);
  }
  promise.set_lived(standing.lived);
  if (standing.lived > 0) *promise.mutable_since() = to_wire(standing.since);
  // If the connection is gone, the coordinator prepares again after it came back.
  if (registered) send(std::move(envelope), generation);
}

void Session::Impl::on_planned(Generation generation, const wire::Start& next) {
  // A member that votes, or a worker that would join.
  const bool may = state == State::kStarted || state == State::kMember || state == State::kPromised;
  if (!may || generation <= promised || generation <= started || generation < planned)
    return stale("planned change", generation);
  if (generation == planned) return;  // said again after a reconnect
  planned = generation;
  logger.info("change_planned", "generation " + std::to_string(generation) + " is planned",
              {{"generation", generation}, {"world", next.members_size()}});
  host.on_planned(generation, next);
}

void Session::Impl::on_start(Generation generation, const wire::Start& message) {
  if (generation == started) {
    logger.info("start_again", "this generation was started already", {{"generation", generation}});
    return;
  }
  if (generation != promised || closing || generation < started) return stale("start", generation);
  started = generation;
  state = State::kStarted;
  logger.info("generation_started", "generation " + std::to_string(generation) + " starts",
              {{"generation", generation},
               {"step", message.resume().step()},
               {"world", message.members_size()}});
  host.on_start(generation, message);
}

void Session::Impl::on_checkpoint_ack(const wire::CheckpointAck& message) {
  std::erase_if(outbox, [&](const ReliableMessage& entry) {
    return entry.envelope.has_checkpoint() && entry.sent &&
           entry.envelope.checkpoint().name() == message.name();
  });
  host.on_checkpoint_ack(message);
}

void Session::Impl::on_goodbye(const wire::Goodbye& message) {
  logger.info("goodbye", "the coordinator says goodbye: " + message.message(),
              {{"exit_code", message.exit_code()}});
  finish(status_from_exit_code(message.exit_code(), message.message()),
         static_cast<int>(message.exit_code()), Cause::kCoordinators);
}

}  // namespace lockstep
