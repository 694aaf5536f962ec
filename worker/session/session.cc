#include "worker/session/session.h"

#include <algorithm>
#include <utility>

#include "comm/base/check.h"
#include "worker/session/session_impl.h"

namespace lockstep {
namespace {

// Messages made on another thread reach the state machine through the loop, if it still lives.
template <typename Impl, typename Fn>
void on_loop(const std::shared_ptr<Impl>& impl, Fn fn) {
  impl->loop.post([weak = std::weak_ptr<Impl>(impl), fn = std::move(fn)] {
    if (auto alive = weak.lock()) fn(*alive);
  });
}

}  // namespace

const char* state_name(Session::State state) {
  switch (state) {
    case Session::State::kJoining:
      return "joining";
    case Session::State::kMember:
      return "member";
    case Session::State::kClosing:
      return "closing";
    case Session::State::kPromised:
      return "promised";
    case Session::State::kStarted:
      return "started";
    case Session::State::kLeaving:
      return "leaving";
    case Session::State::kEnded:
      return "ended";
  }
  return "unknown";
}

int64_t heartbeat_interval_ms(uint32_t lease_s) {
  return std::clamp<int64_t>(int64_t{lease_s} * 1'000 / 5, 50, 1'000);
}

Session::Session(rpc::Transport& transport, Options options, SessionHost& host, Logger& logger)
    : impl_(std::make_shared<Impl>(transport, std::move(options), host, logger)) {
  impl_->start(transport);
}

Session::~Session() {
  impl_->stop_timers();
  impl_->rpc->close();
}

void Session::begin(wire::Register hello) {
  LOCKSTEP_CHECK(!impl_->hello, "a session begins once");
  impl_->hello = std::move(hello);
  if (impl_->rpc->is_ready()) impl_->send_register();
}

void Session::drain(std::string reason) {
  impl_->set_drain(std::move(reason));
}

void Session::end(const Status& why) {
  impl_->finish(why, exit_code(why));
}

Session::State Session::state() const {
  return impl_->state;
}
MemberId Session::member() const {
  return impl_->member;
}
Generation Session::generation() const {
  return impl_->started;
}
Term Session::term() const {
  return impl_->term;
}

Status Session::add_record(Generation generation, wire::StepRecord record) {
  if (impl_->records.add(generation, std::move(record)))
    on_loop(impl_, [](Impl& impl) { impl.pump(); });
  return Status::ok();
}

Status Session::report_eval(Generation generation, wire::EvalReport report) {
  impl_->records.add_eval(generation, std::move(report));
  on_loop(impl_, [](Impl& impl) { impl.pump(); });
  return Status::ok();
}

void Session::report_checkpoint(Generation generation, wire::CheckpointReport report) {
  ReliableMessage message;
  message.envelope.set_generation(generation);
  *message.envelope.mutable_checkpoint() = std::move(report);
  on_loop(impl_, [message](Impl& impl) { impl.report(message); });
}

void Session::report_check(Generation generation, wire::CheckReport report) {
  ReliableMessage message;
  message.envelope.set_generation(generation);
  *message.envelope.mutable_check() = std::move(report);
  on_loop(impl_, [message](Impl& impl) { impl.report(message); });
}

void Session::suspect(Generation generation, MemberId member, std::string what) {
  ReliableMessage message;
  message.envelope.set_generation(generation);
  message.envelope.mutable_peer_suspect()->set_member(member);
  message.envelope.mutable_peer_suspect()->set_what(std::move(what));
  on_loop(impl_, [message](Impl& impl) { impl.suspect(message); });
}

void Session::report_end(Generation generation, Step step) {
  ReliableMessage message;
  message.envelope.set_generation(generation);
  message.envelope.mutable_end()->set_step(step);
  on_loop(impl_, [message](Impl& impl) { impl.report_end(message); });
}

void Session::switched(Generation generation, ResumePoint since) {
  on_loop(impl_, [generation, since](Impl& impl) { impl.switched(generation, since); });
}

void Session::leave(Generation generation, wire::Leave::Reason reason, Status status,
                    std::optional<ResumePoint> applied) {
  ReliableMessage message;
  message.envelope.set_generation(generation);
  wire::Leave& leave = *message.envelope.mutable_leave();
  leave.set_reason(reason);
  leave.set_code(static_cast<uint32_t>(status.code()));
  leave.set_message(status.message());
  if (applied) *leave.mutable_applied() = to_wire(*applied);
  on_loop(impl_, [message](Impl& impl) { impl.set_leave(message); });
}

bool Session::are_recorded() const {
  return impl_->records.empty();
}

Result<RecordQueue::Unacknowledged> Session::unacknowledged() const {
  return impl_->records.unacknowledged(limits::kManifestRecordsBytes);
}

}  // namespace lockstep
