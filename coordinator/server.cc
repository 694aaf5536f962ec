#include "coordinator/server.h"

#include <deque>
#include <optional>
#include <utility>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/planted_bug.h"
#include "coordinator/observe.h"
#include "coordinator/server_away.h"
#include "metrics/goodput.h"

namespace lockstep::coordinator {
namespace {

constexpr int64_t kTickMs = 100;
constexpr int64_t kLeaveMs = 3'000;   // from the last Goodbye until connections are cut
constexpr int64_t kReturnMs = 5'000;  // in which everybody has found a new coordinator
constexpr char kSummaryName[] = "/summary.json";

}  // namespace

struct Server::Impl {
  Impl(Parts p, Options o, State s, EarlierTerms earlier)
      : parts(std::move(p)),
        options(std::move(o)),
        state(std::move(s)),
        began_ns(parts.clock.monotonic_ns() - earlier.wall_ms * 1'000'000),
        away(earlier.is_take_over ? parts.loop.now_ms() + kReturnMs : 0),
        goodput(began_ns),
        stats(std::move(earlier.stats)) {
    goodput.step_survives(stats.step_seconds());
  }

  ~Impl() {
    parts.loop.cancel(tick_timer);
    parts.loop.cancel(leave_timer);
  }

  void tick();
  void enqueue(Event event);
  void turn();
  bool commit(const std::vector<Action>& actions);
  void perform(Action& action);
  void finish();
  void end_term();
  Status write_summary();
  void stop_broken(const Status& status);
  void leave_after(int64_t delay_ms);
  void end_when_alone();
  ReportTimes times() const;

  Parts parts;
  Options options;
  State state;
  int64_t began_ns;  // as if the terms had followed each other without a pause
  Away away;
  Goodput goodput;
  RunStats stats;
  std::unique_ptr<rpc::RpcServer> rpc;
  std::deque<Event> queue;
  bool is_turn_posted = false;
  bool is_broken = false;
  bool is_over = false;                 // only peers that leave are awaited
  std::optional<std::string> term_end;  // why the term is over and the run is not
  bool has_ended = false;               // on_end was called
  int final_code = 0;
  rpc::TimerId tick_timer = 0;
  rpc::TimerId leave_timer = 0;
  // What is posted to the loop may run after the server is gone.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

void Server::Impl::tick() {
  enqueue(Tick{});
  tick_timer = parts.loop.call_after(kTickMs, [this] { tick(); });
}

void Server::Impl::enqueue(Event event) {
  if (is_broken) return;
  queue.push_back(std::move(event));
  if (is_turn_posted) return;
  is_turn_posted = true;
  // Posted, not called: what else has arrived by then shares the commit.
  parts.loop.post([this, weak = std::weak_ptr<bool>(alive)] {
    if (!weak.expired()) turn();
  });
}

void Server::Impl::turn() {
  is_turn_posted = false;
  if (is_broken || term_end) return;
  std::vector<Action> actions;
  while (!queue.empty()) {
    const Event event = std::move(queue.front());
    queue.pop_front();
    away.note(event, state, is_over);
    Decision decision = decide(parts.loop.now_ms(), std::move(state), event, options);
    state = std::move(decision.state);
    log_reason(parts.logger, decision.reason, event);
    observe_reason(parts.metrics, decision.reason);
    for (Action& action : decision.actions) actions.push_back(std::move(action));
  }
  if (LOCKSTEP_BUG(kAckBeforeCommit)) {
    for (Action& action : actions)
      if (std::holds_alternative<Send>(action)) perform(action);
  }
  if (LOCKSTEP_BUG(kHistoryBeforeCommit)) {
    for (const Action& action : actions)
      if (const auto* line = std::get_if<AppendHistory>(&action)) parts.history.append(line->step);
    (void)parts.history.flush();
  }
  if (!commit(actions)) return;
  for (Action& action : actions) perform(action);
  if (Status status = parts.history.flush(); !status.is_ok()) return stop_broken(status);
  observe_members(parts.metrics, state);
  if (term_end) return end_term();
  if (is_over) finish();
}

void Server::Impl::end_term() {
  parts.loop.cancel(tick_timer);
  rpc.reset();
  parts.on_term_end(*term_end);
}

bool Server::Impl::commit(const std::vector<Action>& actions) {
  std::vector<JournalEntry> entries;
  for (const Action& action : actions) {
    if (const auto* persist = std::get_if<Persist>(&action)) entries.push_back(persist->entry);
  }
  if (entries.empty()) return true;
  const int64_t begin_ns = parts.clock.monotonic_ns();
  const Status status = parts.journal.commit(entries, parts.clock.wall_ms());
  if (!status.is_ok()) {
    stop_broken(status);
    return false;
  }
  parts.metrics.journal().committed(
      static_cast<double>(parts.clock.monotonic_ns() - begin_ns) / 1e9, entries.size());
  for (const JournalEntry& entry : entries) observe_entry(parts.metrics, state, entry);
  return true;
}

void Server::Impl::perform(Action& action) {
  if (const auto* send = std::get_if<Send>(&action)) {
    rpc->send(send->to, send->envelope);
  } else if (const auto* close = std::get_if<CloseConnection>(&action)) {
    rpc->disconnect(close->connection);
    enqueue(ConnectionClosed{close->connection, "closed by the coordinator"});
  } else if (const auto* history = std::get_if<AppendHistory>(&action)) {
    if (!LOCKSTEP_BUG(kHistoryBeforeCommit)) parts.history.append(history->step);
    stats.add(history->step);
    goodput.step_survives(static_cast<double>(history->step.wall_us) / 1e6);
    observe_step(parts.metrics, history->step);
  } else if (const auto* line = std::get_if<LogLine>(&action)) {
    write_line(parts.logger, *line);
  } else if (const auto* over = std::get_if<EndTerm>(&action)) {
    term_end = over->message;
  } else if (const auto* end = std::get_if<EndRun>(&action)) {
    is_over = true;
    final_code = end->exit_code;
  }
}

void Server::Impl::finish() {
  if (leave_timer != 0) return end_when_alone();
  if (const Status written = write_summary(); !written.is_ok()) {
    parts.logger.error("summary_not_written", written.message());
    if (final_code == 0) final_code = 70;
  }
  if (final_code == 0 || final_code == 75) {
    parts.logger.info("run_ended", state.message, {{"exit_code", final_code}});
  } else {
    parts.logger.error("run_failed", state.message, {{"exit_code", final_code}});
  }
  leave_after(kLeaveMs);
  end_when_alone();
}

void Server::Impl::leave_after(int64_t delay_ms) {
  leave_timer = parts.loop.call_after(delay_ms, [this] {
    rpc.reset();
    end_when_alone();
  });
}

Status Server::Impl::write_summary() {
  return replace_file(options.run_dir + kSummaryName, summary_json(state, options, stats, times()));
}

void Server::Impl::end_when_alone() {
  if (has_ended) return;
  const bool is_awaited = away.is_anybody(parts.loop.now_ms());
  if (rpc != nullptr && (rpc->peers() > 0 || is_awaited)) return;  // until leave_after() is over
  has_ended = true;
  parts.loop.cancel(tick_timer);
  parts.on_end(final_code);
}

// The journal or the history cannot be written. Nothing more may be promised, so nothing more is
// decided; that the coordinator stops is true whatever reached the disk.
void Server::Impl::stop_broken(const Status& status) {
  is_broken = true;
  is_over = true;
  final_code = exit_code(Status(Code::kInternal, ""));
  state.run = RunState::kEnded;
  state.exit_code = final_code;
  state.message =
      "the coordinator stops, because it cannot write what it decides: " + status.message() +
      ". Make room on the disk of " + options.run_dir + " and start again with --resume";
  wire::Envelope goodbye;
  goodbye.set_term(state.term);
  goodbye.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(final_code));
  goodbye.mutable_goodbye()->set_message(state.message);
  for (const auto& [peer, member] : state.by_connection) rpc->send(peer, goodbye);
  for (const auto& [peer, agent] : state.agents) rpc->send(peer, goodbye);
  finish();
}

ReportTimes Server::Impl::times() const {
  const int64_t now_ns = parts.clock.monotonic_ns();
  return {static_cast<double>(now_ns - began_ns) / 1e9, goodput.ratio(now_ns)};
}

Server::Server(Parts parts, Options options, State state, EarlierTerms earlier)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options), std::move(state),
                                   std::move(earlier))) {
  impl_->parts.metrics.membership().term_began(impl_->state.term);
}

Server::~Server() = default;

Status Server::listen(rpc::Transport& transport, const rpc::Address& address, std::string token) {
  Impl* impl = impl_.get();
  rpc::RpcServer::Handlers handlers;
  handlers.on_peer = [](rpc::PeerId, const std::string&) {};
  handlers.on_message = [impl](rpc::PeerId peer, wire::Envelope&& envelope) {
    impl->enqueue(MessageReceived{peer, std::move(envelope)});
  };
  handlers.on_lost = [impl](rpc::PeerId peer, const Status& why) {
    impl->enqueue(ConnectionClosed{peer, why.message()});
    if (impl->is_over) impl->end_when_alone();
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      impl->rpc, rpc::RpcServer::start(transport, address, std::move(token), impl->parts.logger,
                                       std::move(handlers)));
  if (impl->state.run != RunState::kEnded) {
    impl->tick();
    return Status::ok();
  }
  impl->final_code = impl->state.exit_code;
  impl->leave_after(kReturnMs);
  return Status::ok();
}

const rpc::Address& Server::control_address() const {
  return impl_->rpc->address();
}

void Server::stop(const std::string& why) {
  impl_->enqueue(StopSignal{why});
}

Status Server::keep_summary() {
  const auto kept = read_file(impl_->options.run_dir + kSummaryName, limits::kJobFileBytes);
  if (kept.is_ok() && is_summary_of(*kept, impl_->state)) return Status::ok();
  return impl_->write_summary();
}

std::string Server::status() const {
  return status_json(impl_->state, impl_->options, impl_->stats, impl_->times());
}

std::string Server::discovery(const std::string& own_address) const {
  return discovery_json(impl_->state, own_address);
}

std::string Server::metrics() {
  impl_->parts.metrics.job().set_goodput(impl_->times().goodput);
  return impl_->parts.metrics.expose_text();
}

bool Server::is_ready() const {
  return impl_->state.run == RunState::kStarted;
}

const State& Server::state() const {
  return impl_->state;
}

}  // namespace lockstep::coordinator
