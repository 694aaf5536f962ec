// The members of Session, and the functions that its two halves share: session_link.cc sends,
// session_orders.cc obeys. Only the sources of Session include this header.
//
// Thread-safety: the loop's thread, except `records`, which locks itself.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "worker/session/phase_plan.h"
#include "worker/session/session.h"

namespace lockstep {

// A message that the session sends again after a reconnect until the coordinator answers.
struct ReliableMessage {
  wire::Envelope envelope;
  bool sent = false;  // on the present connection
};

struct Session::Impl : std::enable_shared_from_this<Session::Impl> {
  Impl(rpc::Transport& t, Options o, SessionHost& h, Logger& l)
      : loop(t.loop()),
        host(h),
        logger(l),
        options(std::move(o)),
        records(options.spill_path, [this](const Status& why) { wait_for_coordinator(why); }) {}

  rpc::Loop& loop;
  SessionHost& host;
  Logger& logger;
  const Options options;
  RecordQueue records;
  std::unique_ptr<rpc::RpcClient> rpc;

  State state = State::kJoining;
  std::optional<wire::Register> hello;
  bool registered = false;  // on the present connection
  MemberId member = 0;
  Term term = 0;
  Generation promised = 0;  // highest Prepare obeyed, or switched to; started <= promised
  Generation started = 0;
  Generation planned = 0;              // the pending planned change; 0: none
  Generation forgotten = 0;            // N6: through this one, of this worker's old identity
  bool closing = false;                // the host has not answered close(promised - 1) yet
  std::deque<ReliableMessage> outbox;  // reports, in order
  std::optional<ReliableMessage> leave;
  std::optional<ReliableMessage> drain;
  std::optional<ReliableMessage> switch_report;  // until a Register says the same
  std::optional<ReliableMessage> end_report;     // the same
  std::optional<ReliableMessage> suspicion;      // until its generation is over
  rpc::TimerId heartbeat_timer = 0;
  rpc::TimerId flush_timer = 0;
  rpc::TimerId join_timer = 0;

  // ---- session_link.cc: the connection and messages that leave
  void start(rpc::Transport& transport);
  void on_ready();
  std::string how_it_failed() const;  // part of a sentence; empty: it did not
  void on_lost(const Status& why);
  void send_register();
  void send(wire::Envelope envelope, Generation generation);
  void pump();  // sends every message that may go now
  void report(ReliableMessage message);
  void set_leave(ReliableMessage message);
  void set_drain(std::string reason);
  void suspect(ReliableMessage message);
  void send_once(ReliableMessage& message);
  void report_end(ReliableMessage message);
  void switched(Generation generation, const ResumePoint& since);
  void schedule_heartbeat();
  void schedule_flush();
  void fail_if_error(const Status& status);
  // The side that wanted the end. If this worker did, the session tells the coordinator.
  enum class Cause { kOurs, kCoordinators };
  void finish(const Status& why, int code, Cause cause = Cause::kOurs);
  void stop_timers();
  // On the training thread, which waits for room among the records from here on.
  void wait_for_coordinator(const Status& why) const;

  // ---- session_orders.cc: the coordinator's messages
  void on_message(wire::Envelope&& message);
  bool fence_term(const wire::Envelope& message);
  void on_registered(const wire::Registered& message);
  void on_prepare(Generation generation);
  void on_closed(Generation generation, const Standing& standing);
  void on_planned(Generation generation, const wire::Start& next);
  void become_new();
  void on_start(Generation generation, const wire::Start& message);
  void on_checkpoint_ack(const wire::CheckpointAck& message);
  void on_goodbye(const wire::Goodbye& message);
  void stale(const char* what, Generation generation);
};

}  // namespace lockstep
