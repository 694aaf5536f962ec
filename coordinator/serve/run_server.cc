#include "coordinator/serve/run_server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/base/planted_bug.h"
#include "comm/http/http_options.h"
#include "comm/run/job/predictions.h"
#include "coordinator/report/job_json.h"
#include "coordinator/report/run_progress.h"
#include "coordinator/report/watch_json.h"
#include "coordinator/serve/observe.h"
#include "coordinator/serve/run_server_impl.h"

namespace lockstep::coordinator {
namespace {

constexpr int64_t kTickMs = 100;

}  // namespace

void RunServer::Impl::tick() {
  enqueue(Tick{});
  tick_timer = parts.loop.call_after(kTickMs, [this] { tick(); });
  fold();
}

void RunServer::Impl::enqueue(Event event) {
  if (is_broken) return;
  queue.push_back(std::move(event));
  if (is_turn_posted) return;
  is_turn_posted = true;
  // Posted, not called: events that have arrived by then share the commit.
  parts.loop.post([this, weak = std::weak_ptr<bool>(alive)] {
    if (!weak.expired()) turn();
  });
}

void RunServer::Impl::turn() {
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
  shared = {};
  if (Status status = write_history(); !status.is_ok()) return stop_broken(status);
  if (Status status = write_evals(actions); !status.is_ok()) return stop_broken(status);
  if (term_end) return end_term();
  if (is_over) finish();
}

History::Steps RunServer::Impl::journalled_steps() {
  return [this](Step from, Step to, const auto& visit) {
    return parts.journal.visit_steps(from, to, visit);
  };
}

// A run that ends may have cut its lineage; a term that begins cuts the file by itself.
Status RunServer::Impl::write_history() {
  if ((parts.history.is_pending() || is_over) && !parts.history.is_whole()) {
    parts.logger.warn("history_restored",
                      "history.jsonl was deleted or changed under the run: it is written anew from "
                      "the journal");
    LOCKSTEP_RETURN_IF_ERROR(parts.history.restore(journalled_steps()));
  }
  LOCKSTEP_RETURN_IF_ERROR(parts.history.flush());
  if (!is_over || parts.history.lines() <= state.completed) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pieces, parts.journal.pieces());
  return parts.history.cut(state.completed, pieces);
}

Status RunServer::Impl::write_evals(const std::vector<Action>& actions) {
  if (parts.evals == nullptr) return Status::ok();
  const bool is_due =
      is_over || std::any_of(actions.begin(), actions.end(), [](const Action& a) {
        const auto* persist = std::get_if<Persist>(&a);
        return persist != nullptr && (std::holds_alternative<EvalEntry>(persist->entry) ||
                                      std::holds_alternative<RollbackEntry>(persist->entry));
      });
  return is_due ? parts.evals->follow(state.evals) : Status::ok();
}

bool RunServer::Impl::commit(const std::vector<Action>& actions) {
  std::vector<JournalEntry> entries;
  for (const Action& action : actions) {
    if (const auto* persist = std::get_if<Persist>(&action)) entries.push_back(persist->entry);
  }
  return entries.empty() || commit(entries);
}

bool RunServer::Impl::commit(const std::vector<JournalEntry>& entries) {
  if (end_if_superseded()) return false;
  const int64_t begin_ns = parts.clock.monotonic_ns();
  const Status status = parts.journal.commit(entries, parts.clock.both());
  if (!status.is_ok()) {
    stop_broken(status);
    return false;
  }
  state.sequence = parts.journal.mark().sequence;
  // The commit may have taken long: a stopped process, or a file system that is away, knows no
  // clock.
  if (end_if_superseded()) return false;
  parts.metrics.journal().committed(
      static_cast<double>(parts.clock.monotonic_ns() - begin_ns) / 1e9, entries.size());
  for (const JournalEntry& entry : entries) {
    observe_entry(parts.metrics, predicts_tokens(options.job), entry);
    watch_phases(entry);
  }
  return true;
}

void RunServer::Impl::watch_phases(const JournalEntry& entry) {
  if (std::holds_alternative<SlotMapEntry>(entry))
    phases = {};  // shares of the work are others now
  if (const auto* e = std::get_if<RecordsEntry>(&entry)) {
    for (const wire::StepRecord& record : e->records)
      phases.add(parts.loop.now_ms(), e->member, record);
  }
}

// While nothing more urgent is going on.
void RunServer::Impl::fold() {
  const bool is_due = state.run == RunState::kStarted && !is_broken && !is_over && !term_end;
  if (!is_due || !folder) return;
  const auto outcome = folder->work(state);
  if (!outcome.is_ok()) return stop_broken(outcome.status());
  if (outcome->kept) parts.logger.warn("records_kept", *outcome->kept);
  if (outcome->fold) (void)commit(std::vector<JournalEntry>{*outcome->fold});
}

void RunServer::Impl::perform(Action& action) {
  if (const auto* send = std::get_if<Send>(&action)) {
    if (shared.envelope != send->envelope)
      shared = {send->envelope, rpc::RpcServer::share(*send->envelope)};
    rpc->send(send->to, shared.frame);
  } else if (const auto* close = std::get_if<CloseConnection>(&action)) {
    rpc->disconnect(close->connection);
    enqueue(ConnectionClosed{close->connection, "closed by the coordinator"});
  } else if (const auto* history = std::get_if<AppendHistory>(&action)) {
    if (!LOCKSTEP_BUG(kHistoryBeforeCommit)) parts.history.append(history->step);
    const double before = stats.useful_seconds();
    stats.add(history->step);
    steps.add(parts.loop.now_ms(), history->step);
    goodput.step_survives(stats.useful_seconds() - before);
    observe_step(parts.metrics, history->step, options);
  } else if (const auto* wanted = std::get_if<ReadManifest>(&action)) {
    read_manifest(wanted->name);
  } else if (const auto* line = std::get_if<LogLine>(&action)) {
    write_line(parts.logger, *line);
  } else if (const auto* over = std::get_if<EndTerm>(&action)) {
    term_end = over->message;
  } else if (const auto* end = std::get_if<EndRun>(&action)) {
    is_over = true;
    final_code = end->exit_code;
  }
}

void RunServer::Impl::read_manifest(const std::string& name) {
  auto read = parts.read_manifest(name);
  ManifestRead answer{name, {}, {}};
  (read.is_ok() ? answer.sha256 : answer.error) =
      read.is_ok() ? std::move(read).value() : read.status().message();
  enqueue(std::move(answer));
}

RunServer::RunServer(Parts parts, Options options, State state, EarlierTerms earlier)
    : impl_(std::make_unique<Impl>(std::move(parts), std::move(options), std::move(state),
                                   std::move(earlier))) {
  observe_begin(impl_->parts.metrics, impl_->state);
}

RunServer::~RunServer() = default;

Status RunServer::listen(rpc::Transport& transport, const rpc::Address& address, rpc::Token token,
                         const std::string& name) {
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
                                       std::move(handlers), name));
  if (impl->state.run != RunState::kEnded) {
    impl->tick();
    return Status::ok();
  }
  impl->final_code = impl->state.exit_code;
  impl->leave_after(kReturnMs);
  return Status::ok();
}

const rpc::Address& RunServer::control_address() const {
  return impl_->rpc->address();
}

void RunServer::stop(const std::string& why) {
  impl_->enqueue(StopSignal{why});
}

void RunServer::beat() {
  if (impl_->rpc == nullptr) return;  // the run is over, and all members have gone
  impl_->look_after_files();
  wire::Envelope envelope;
  envelope.set_term(impl_->state.term);
  envelope.mutable_beat();
  impl_->rpc->send_all(envelope);
}

bool RunServer::end_if_superseded() {
  return impl_->end_if_superseded();
}

std::string RunServer::status(size_t members) const {
  return status_json(impl_->state, impl_->options, impl_->stats, impl_->times(),
                     {impl_->phases, impl_->steps, impl_->parts.loop.now_ms(), members});
}

std::string RunServer::history(size_t points) const {
  return history_json(impl_->stats.curves(), impl_->state.evals, impl_->options.shape.turns,
                      points);
}

std::string RunServer::job() const {
  return job_json(impl_->options.job);
}

std::string RunServer::discovery(const std::string& own_address) const {
  return discovery_json(impl_->state, own_address,
                        http::is_served_beyond_loopback(impl_->options.job));
}

std::string RunServer::metrics() {
  impl_->parts.metrics.job().set_goodput(impl_->times().goodput);
  observe_state(impl_->parts.metrics, impl_->state, impl_->options);
  observe_members(impl_->parts.metrics, impl_->state);
  const int64_t now_ms = impl_->parts.loop.now_ms();
  observe_recent(impl_->parts.metrics, impl_->options, impl_->steps, impl_->phases, now_ms);
  observe_ranks(impl_->parts.metrics, impl_->state, impl_->phases, now_ms);
  return impl_->parts.metrics.expose_text();
}

trainer::RunProgress RunServer::progress() const {
  return progress_of(impl_->state, impl_->options, impl_->stats);
}

bool RunServer::is_ready() const {
  return impl_->state.run == RunState::kStarted;
}

const State& RunServer::state() const {
  return impl_->state;
}

}  // namespace lockstep::coordinator
