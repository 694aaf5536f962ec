// The connection of a session, and everything that leaves through it.
#include <algorithm>
#include <utility>

#include "comm/base/planted_bug.h"
#include "comm/wire/in_hand.h"
#include "worker/session/session_impl.h"

namespace lockstep {

void Session::Impl::start(rpc::Transport& transport) {
  rpc::RpcClient::Handlers handlers;
  handlers.on_ready = [this] { on_ready(); };
  handlers.on_message = [this](wire::Envelope&& message) { on_message(std::move(message)); };
  handlers.on_lost = [this](const Status& why) { on_lost(why); };
  handlers.on_failed = [this](const Status& why) { finish(why, exit_code(why)); };
  handlers.on_distrust = [this](const Status& why) {
    logger.warn("coordinator_distrusted", why.message());
  };
  handlers.on_trouble = [this](const Status& why) {
    logger.warn("coordinator_unreachable", "this worker " + why.message());
  };
  rpc = std::make_unique<rpc::RpcClient>(transport, options.rpc, std::move(handlers));
  schedule_heartbeat();
  schedule_flush();
  if (options.join_deadline_ms > 0)
    join_timer = loop.call_after(options.join_deadline_ms, [this] {
      finish(Status(Code::kUnavailable, "the coordinator has not taken this worker in within " +
                                            std::to_string(options.join_deadline_ms / 1'000) +
                                            " s" + how_it_failed() + "; see the coordinator's log"),
             exit_code(Status(Code::kUnavailable, "")));
    });
}

std::string Session::Impl::how_it_failed() const {
  const Status why = rpc->last_failure();
  return why.is_ok() ? "" : ", and the last attempt to reach it failed: " + why.message();
}

void Session::Impl::on_ready() {
  logger.info("connected", "connected to the coordinator", {{"member", member}});
  if (hello) send_register();
}

void Session::Impl::on_lost(const Status& why) {
  // Before a generation it costs nothing, and the run may be between two terms.
  logger.write(started > 0 ? "warn" : "info", "connection_lost",
               "lost the coordinator (" + why.message() + "); trying again",
               {{"member", member}, {"generation", started}});
  registered = false;
  if (!LOCKSTEP_BUG(kBatchLostOnReconnect)) records.rewind();
  for (ReliableMessage& message : outbox) message.sent = false;
  if (leave) leave->sent = false;
  if (drain) drain->sent = false;
  if (suspicion) suspicion->sent = false;
}

void Session::Impl::send_register() {
  wire::Register message = *hello;
  message.set_member(member);
  const Standing standing = host.standing();
  message.set_generation(standing.lived);
  if (standing.lived > 0) *message.mutable_since() = to_wire(standing.since);
  if (standing.applied) {
    message.set_has_state(true);
    *message.mutable_applied() = to_wire(*standing.applied);
    message.set_ends_at(standing.ends_at);
  }
  switch_report.reset();  // it is said now
  end_report.reset();
  wire::Envelope envelope;
  *envelope.mutable_register_() = std::move(message);
  send(std::move(envelope), standing.lived);
}

void Session::Impl::send(wire::Envelope envelope, Generation generation) {
  envelope.set_term(term);
  envelope.set_generation(generation);
  // An error is a lost connection: on_lost() follows, and reliable messages go out again.
  (void)rpc->send(envelope);
}

void Session::Impl::pump() {
  if (!registered || state == State::kEnded) return;
  if (drain) send_once(*drain);
  if (suspicion) send_once(*suspicion);
  for (;;) {
    auto batch = records.next();
    if (!batch.is_ok()) return fail_if_error(batch.status());
    if (!batch->has_value()) break;
    wire::Envelope envelope;
    *envelope.mutable_step_records() = std::move((*batch)->records);
    send(std::move(envelope), (*batch)->generation);
  }
  if (switch_report) send_once(*switch_report);
  if (end_report) send_once(*end_report);
  for (ReliableMessage& message : outbox) send_once(message);
  if (!leave) return;
  const bool failed = leave->envelope.leave().reason() == wire::Leave::FAILED;
  if (failed || records.empty()) send_once(*leave);
}

void Session::Impl::send_once(ReliableMessage& message) {
  if (!std::exchange(message.sent, true)) send(message.envelope, message.envelope.generation());
}

void Session::Impl::report(ReliableMessage message) {
  if (state == State::kEnded || message.envelope.generation() <= forgotten) return;  // N6
  // No message answers a check, and checks come as long as the run lasts: drop one that was sent.
  if (message.envelope.has_check()) {
    std::erase_if(outbox, [](const auto& m) { return m.envelope.has_check() && m.sent; });
  }
  outbox.push_back(std::move(message));
  pump();
}

void Session::Impl::set_leave(ReliableMessage message) {
  if (state == State::kEnded || message.envelope.generation() <= forgotten) return;  // N6
  const bool failed = message.envelope.leave().reason() == wire::Leave::FAILED;
  if (!failed && message.envelope.generation() < promised) return;  // N4
  if (state == State::kStarted) state = State::kLeaving;
  if (failed) *message.envelope.mutable_leave()->mutable_in_hand() = to_wire(host.in_hand());
  leave = std::move(message);
  records.flush();
  pump();
}

void Session::Impl::set_drain(std::string reason) {
  if (state == State::kEnded || drain) return;
  drain.emplace();
  drain->envelope.set_generation(started);
  drain->envelope.mutable_drain()->set_reason(std::move(reason));
  pump();
}

// The coordinator would never replace a broken generation that it does not hear of.
void Session::Impl::suspect(ReliableMessage message) {
  const Generation generation = message.envelope.generation();
  if (state == State::kEnded || generation < promised || generation <= forgotten) return;
  suspicion = std::move(message);
  pump();
}

void Session::Impl::report_end(ReliableMessage message) {
  if (state == State::kEnded || message.envelope.generation() <= forgotten) return;  // N6
  logger.info(
      "run_ended_by_script", "the script ended the run",
      {{"generation", message.envelope.generation()}, {"step", message.envelope.end().step()}});
  end_report = std::move(message);
  pump();
}

// The records of the older generation come first: the coordinator still waits for them.
void Session::Impl::switched(Generation generation, const ResumePoint& since) {
  if (state == State::kEnded || generation <= forgotten || generation <= started) return;
  started = generation;
  if (planned <= generation) planned = 0;
  if (promised > generation) return;  // the promise of the newer one says that we were here
  promised = generation;
  state = State::kStarted;
  suspicion.reset();
  logger.info("generation_switched", "switched to generation " + std::to_string(generation),
              {{"generation", generation}, {"step", since.step}});
  switch_report.emplace();
  switch_report->envelope.set_generation(generation);
  *switch_report->envelope.mutable_switched()->mutable_since() = to_wire(since);
  records.flush();
  pump();
}

void Session::Impl::schedule_heartbeat() {
  heartbeat_timer = loop.call_after(options.heartbeat_ms, [this] {
    if (registered) {
      SessionHost::Heartbeat now = host.heartbeat();
      // Until the state of this generation is installed, that is progress of the one before, and
      // may be of steps that were rolled back since.
      if (host.standing().lived != started) now = {.is_paused = now.is_paused};
      wire::Envelope envelope;
      wire::Heartbeat& heartbeat = *envelope.mutable_heartbeat();
      heartbeat.set_step(now.step);
      heartbeat.set_phase(static_cast<uint32_t>(now.phase));
      heartbeat.set_bucket(now.bucket);
      heartbeat.set_enqueued(now.enqueued);
      heartbeat.set_paused(now.is_paused);
      send(std::move(envelope), started);
    }
    schedule_heartbeat();
  });
}

void Session::Impl::schedule_flush() {
  flush_timer = loop.call_after(limits::kRecordBatchMs, [this] {
    schedule_flush();
    records.flush();
    pump();
  });
}

void Session::Impl::fail_if_error(const Status& status) {
  if (!status.is_ok()) finish(status, exit_code(status));
}

void Session::Impl::stop_timers() {
  for (rpc::TimerId* timer : {&heartbeat_timer, &flush_timer, &join_timer})
    loop.cancel(std::exchange(*timer, 0));
}

void Session::Impl::finish(const Status& why, int code, Cause cause) {
  if (state == State::kEnded) return;
  const auto keep_alive = shared_from_this();  // the host may let go of the session in on_end
  // The coordinator should not have to guess from a closed socket why this worker is gone.
  const bool told = leave && leave->sent;
  if (registered && !told && cause == Cause::kOurs) {
    wire::Envelope envelope;
    envelope.mutable_leave()->set_reason(wire::Leave::FAILED);
    envelope.mutable_leave()->set_code(static_cast<uint32_t>(why.code()));
    envelope.mutable_leave()->set_message(why.message());
    send(std::move(envelope), started);
  }
  state = State::kEnded;
  registered = false;
  stop_timers();
  records.end();
  rpc->close();
  host.on_end(why, code);
}

void Session::Impl::wait_for_coordinator(const Status& why) const {
  logger.warn("records_wait",
              why.message() +
                  ", and the coordinator has not acknowledged the steps before; training waits for "
                  "it and loses nothing. Start the coordinator again, or make room on the disk");
}

}  // namespace lockstep
