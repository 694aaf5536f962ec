// Ends a term or a run: writes the summary, and tells every peer that has to hear of the end.
#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/run/directory/layout.h"
#include "coordinator/serve/run_server_impl.h"

namespace lockstep::coordinator {
namespace {

constexpr int64_t kLeaveMs = 3'000;  // from the last Goodbye until connections are cut

}  // namespace

void RunServer::Impl::end_term() {
  parts.loop.cancel(tick_timer);
  rpc.reset();
  parts.on_term_end(*term_end);
}

void RunServer::Impl::finish() {
  if (leave_timer != 0) return end_when_alone();
  // Looks before it claims success.
  if (!is_broken) {
    if (const Status kept = check_files(); !kept.is_ok()) return stop_broken(kept);
  }
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

// Reads the whole history and all evaluations, so only once. Their size does not tell that somebody
// has changed a line.
Status RunServer::Impl::check_files() {
  LOCKSTEP_RETURN_IF_ERROR(parts.journal.look());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pieces, parts.journal.pieces());
  LOCKSTEP_ASSIGN_OR_RETURN(const bool was_changed,
                            parts.history.correct(state.completed, journalled_steps(), pieces));
  if (was_changed)
    parts.logger.warn("history_restored",
                      "lines of history.jsonl were changed under the run: they are written anew "
                      "from the journal");
  if (parts.evals == nullptr) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(const bool was_other, parts.evals->correct(state.evals));
  if (was_other)
    parts.logger.warn("evals_restored",
                      "lines of evals.jsonl were changed under the run: they are written anew from "
                      "the journal");
  return Status::ok();
}

void RunServer::Impl::leave_after(int64_t delay_ms) {
  leave_timer = parts.loop.call_after(delay_ms, [this] {
    rpc.reset();
    end_when_alone();
  });
}

Status RunServer::Impl::write_summary() {
  return replace_file(rundir::file_in(options.run_dir, rundir::kSummary),
                      summary_json(state, options, stats, times()));
}

void RunServer::Impl::end_when_alone() {
  if (has_ended) return;
  const bool is_awaited = away.is_anybody(parts.loop.now_ms());
  if (rpc != nullptr && (rpc->peers() > 0 || is_awaited)) return;  // until leave_after() is over
  has_ended = true;
  parts.loop.cancel(tick_timer);
  parts.on_end(final_code);
}

// The journal or the history cannot be written. The coordinator may promise nothing more, so it
// decides nothing more. That it stops is true whatever reached the disk.
void RunServer::Impl::stop_broken(const Status& status) {
  is_broken = true;
  is_over = true;
  final_code = exit_code(Status(Code::kInternal, ""));
  state.run = RunState::kEnded;
  state.exit_code = final_code;
  const bool is_lost = !parts.journal.look().is_ok();
  state.message =
      is_lost
          ? "the coordinator stops, because its journal is lost: " + status.message() +
                ". Put the file back, or start again with --resume, which names the "
                "checkpoints to go on from"
          : "the coordinator stops, because it cannot write what it decides: " + status.message() +
                ". Make room on the disk of " + options.run_dir + " and start again with --resume";
  wire::Envelope goodbye;
  goodbye.set_term(state.term);
  goodbye.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(final_code));
  goodbye.mutable_goodbye()->set_message(state.message);
  for (const auto& [peer, member] : state.by_connection) rpc->send(peer, goodbye);
  for (const auto& [peer, agent] : state.agents) rpc->send(peer, goodbye);
  finish();
}

// Between two commits there may be much time, and a run whose journal is gone has no proof.
void RunServer::Impl::look_after_files() {
  if (is_broken || is_over || term_end) return;
  if (const Status kept = parts.journal.look(); !kept.is_ok()) stop_broken(kept);
}

bool RunServer::Impl::end_if_superseded() {
  if (!parts.is_superseded || !parts.is_superseded()) return false;
  if (has_ended) return true;
  is_broken = true;
  has_ended = true;
  parts.logger.warn("superseded",
                    "another coordinator has claimed the next term of this run: this one stops");
  parts.loop.cancel(tick_timer);
  rpc.reset();
  parts.on_end(exit_code(Status(Code::kCheckpointed, "")));
  return true;
}

ReportTimes RunServer::Impl::times() const {
  const int64_t now_ns = parts.clock.monotonic_ns();
  return {static_cast<double>(now_ns - began_ns) / 1e9, goodput.ratio(now_ns)};
}

Status RunServer::keep_summary() {
  const auto kept =
      read_file(rundir::file_in(impl_->options.run_dir, rundir::kSummary), limits::kJobFileBytes);
  if (kept.is_ok() && is_summary_of(*kept, impl_->state)) return Status::ok();
  return impl_->write_summary();
}

}  // namespace lockstep::coordinator
