#include "comm/rpc/client.h"

#include <algorithm>
#include <optional>
#include <set>

#include "comm/base/prng.h"
#include "comm/rpc/auth.h"
#include "comm/wire/control.pb.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kTroubles = 8;  // told until it is ready; some name a number that changes

}  // namespace

// Every later callback holds a weak pointer: after close() it finds nothing to do.
struct RpcClient::Impl : std::enable_shared_from_this<Impl> {
  Impl(Transport& the_transport, Options the_options, Handlers the_handlers)
      : transport(the_transport),
        loop(the_transport.loop()),
        options(std::move(the_options)),
        handlers(std::move(the_handlers)),
        jitter(stream_key({options.jitter_seed})) {}

  void start_trying(int64_t delay_ms);
  void attempt();
  void on_connected(Result<std::shared_ptr<Connection>> result);
  void on_frame(wire::Frame&& frame);
  void on_handshake(const wire::Frame& frame);
  void on_close(const Status& why);
  void distrust(const Status& why);
  void try_later(const Status& why);
  void tell_trouble(const Status& why);
  void fail(const Status& why);
  void stop();
  int64_t next_pause_ms();
  TimerId after(int64_t delay_ms, void (Impl::*method)());
  void on_auth_deadline();
  void watch_silence();
  void on_silence_look();
  void on_give_up();

  Transport& transport;
  Loop& loop;
  Options options;
  Handlers handlers;
  Prng jitter;
  int failures = 0;  // since the client was last ready
  bool is_over = false;
  bool is_ready = false;
  std::shared_ptr<Connection> connection;
  std::string dialled;  // the address of the last attempt
  std::optional<ClientHandshake> handshake;
  Status last_failure;
  std::string distrusted;  // the last reported reason
  std::set<std::string> troubles;
  int64_t since_ms = 0;       // it tries
  TimerId attempt_timer = 0;  // the next attempt, or the deadline of the handshake
  TimerId give_up_timer = 0;
  TimerId silence_timer = 0;
  int64_t silent_looks = 0;  // in a row
};

TimerId RpcClient::Impl::after(int64_t delay_ms, void (Impl::*method)()) {
  return loop.call_after(delay_ms, [weak = weak_from_this(), method] {
    if (const auto self = weak.lock(); self && !self->is_over) ((*self).*method)();
  });
}

void RpcClient::Impl::start_trying(int64_t delay_ms) {
  since_ms = loop.now_ms();
  if (options.give_up_after_ms > 0)
    give_up_timer = after(options.give_up_after_ms, &Impl::on_give_up);
  attempt_timer = after(delay_ms, &Impl::attempt);
}

void RpcClient::Impl::attempt() {
  const auto address = options.address();
  if (!address.is_ok()) return try_later(address.status());
  dialled = to_string(*address);
  transport.connect(*address, options.connect_timeout_ms,
                    [weak = weak_from_this()](Result<std::shared_ptr<Connection>> result) {
                      const auto self = weak.lock();
                      if (self && !self->is_over) self->on_connected(std::move(result));
                    });
}

void RpcClient::Impl::on_connected(Result<std::shared_ptr<Connection>> result) {
  if (!result.is_ok()) {
    if (result.status().code() == Code::kConfig) return fail(result.status());
    return try_later(result.status());
  }
  connection = std::move(result).value();
  handshake.emplace(options.token.newest(), dialled);
  attempt_timer = after(limits::kAuthDeadlineMs, &Impl::on_auth_deadline);
  const auto weak = weak_from_this();
  connection->set_handlers({.on_frame =
                                [weak](wire::Frame&& frame) {
                                  if (const auto self = weak.lock())
                                    self->on_frame(std::move(frame));
                                },
                            .on_close =
                                [weak](const Status& why) {
                                  if (const auto self = weak.lock()) self->on_close(why);
                                }});
}

void RpcClient::Impl::on_frame(wire::Frame&& frame) {
  if (handshake) return on_handshake(frame);
  silent_looks = 0;
  wire::Envelope envelope;
  const Status parsed = parse_frame(frame, wire::FrameKind::kEnvelope, &envelope);
  if (!parsed.is_ok()) return on_close(parsed);
  handlers.on_message(std::move(envelope));
}

void RpcClient::Impl::on_handshake(const wire::Frame& frame) {
  auto progress = handshake->on_frame(frame);
  if (!progress.is_ok()) {
    if (options.refusal_is_final) return fail(progress.status().with_context(connection->peer()));
    return distrust(progress.status());
  }
  if (progress->has_reply) connection->send(progress->reply);
  if (!progress->done) return;
  handshake.reset();
  loop.cancel(attempt_timer);
  loop.cancel(give_up_timer);
  connection->set_frame_limit(limits::kFrameBytes);
  failures = 0;
  distrusted.clear();
  troubles.clear();
  last_failure = Status::ok();
  is_ready = true;
  silent_looks = 0;
  watch_silence();
  handlers.on_ready();
}

void RpcClient::Impl::on_auth_deadline() {
  try_later(Status(Code::kTimeout, connection->peer() + " did not finish the handshake within " +
                                       std::to_string(limits::kAuthDeadlineMs) + " ms"));
}

void RpcClient::Impl::watch_silence() {
  if (options.silence_ms > 0)
    silence_timer = after(options.silence_ms / limits::kSilenceLooks, &Impl::on_silence_look);
}

// Several looks instead of one deadline: a stopped process looks once when it goes on, and then
// reads the input that came meanwhile.
void RpcClient::Impl::on_silence_look() {
  if (++silent_looks < limits::kSilenceLooks) return watch_silence();
  on_close(Status(Code::kTimeout, connection->peer() + " has said nothing for " +
                                      std::to_string(options.silence_ms / 1'000) + " s"));
}

void RpcClient::Impl::on_close(const Status& why) {
  if (!is_ready) return why.code() == Code::kRefused ? distrust(why) : try_later(why);
  is_ready = false;
  connection.reset();
  loop.cancel(silence_timer);
  start_trying(next_pause_ms());
  handlers.on_lost(why);
}

// The other end has proven nothing: it may be any program, and the right one may come back.
void RpcClient::Impl::distrust(const Status& why) {
  const Status told = why.with_context(connection->peer());
  try_later(told);
  if (!handlers.on_distrust || distrusted == why.message()) return;
  distrusted = why.message();
  handlers.on_distrust(told);
}

void RpcClient::Impl::try_later(const Status& why) {
  last_failure = why;
  connection.reset();
  handshake.reset();
  loop.cancel(attempt_timer);
  attempt_timer = after(next_pause_ms(), &Impl::attempt);
  tell_trouble(why);
}

void RpcClient::Impl::tell_trouble(const Status& why) {
  const int64_t tried_ms = loop.now_ms() - since_ms;
  const bool is_due = tried_ms >= kTroubleMs && troubles.size() < kTroubles;
  if (!handlers.on_trouble || !is_due || !troubles.insert(why.message()).second) return;
  handlers.on_trouble(Status(why.code(), kTroubleWords + std::to_string(tried_ms / 1'000) +
                                             " s, and goes on trying: " + why.message()));
}

// Doubles with every failure. Half of it is random, so that many clients do not come back at once.
int64_t RpcClient::Impl::next_pause_ms() {
  int64_t pause_ms = std::max<int64_t>(options.first_backoff_ms, 1);
  for (int i = 0; i < failures && pause_ms < options.max_backoff_ms; ++i) pause_ms *= 2;
  ++failures;
  pause_ms = std::min(pause_ms, std::max<int64_t>(options.max_backoff_ms, 1));
  const int64_t half_ms = pause_ms / 2;
  return pause_ms - half_ms +
         static_cast<int64_t>(jitter.below(static_cast<uint64_t>(half_ms) + 1));
}

void RpcClient::Impl::on_give_up() {
  Status why = last_failure;
  if (why.is_ok()) why = Status(Code::kUnavailable, "the coordinator does not answer");
  fail(Status(Code::kUnavailable,
              "gave up after " + std::to_string(options.give_up_after_ms) + " ms: " + why.message(),
              why.obstacle()));
}

void RpcClient::Impl::fail(const Status& why) {
  stop();
  handlers.on_failed(why);
}

void RpcClient::Impl::stop() {
  is_over = true;
  is_ready = false;
  loop.cancel(attempt_timer);
  loop.cancel(give_up_timer);
  loop.cancel(silence_timer);
  connection.reset();
}

RpcClient::RpcClient(Transport& transport, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(transport, std::move(options), std::move(handlers))) {
  impl_->start_trying(0);
}

RpcClient::~RpcClient() {
  close();
}

Status RpcClient::send(const wire::Envelope& envelope) {
  if (!impl_->is_ready)
    return Status(Code::kUnavailable, "there is no connection to the coordinator now");
  const wire::Frame frame = make_frame(wire::FrameKind::kEnvelope, envelope);
  if (frame.payload.size() > limits::kFrameBytes)
    return Status(Code::kInternal, "a message of " + std::to_string(frame.payload.size()) +
                                       " bytes is above the limit of " +
                                       std::to_string(limits::kFrameBytes));
  impl_->connection->send(frame);
  return Status::ok();
}

Status RpcClient::last_failure() const {
  return impl_->last_failure;
}

bool RpcClient::is_ready() const {
  return impl_->is_ready;
}

void RpcClient::close() {
  impl_->stop();
}

}  // namespace lockstep::rpc
