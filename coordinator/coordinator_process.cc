#include "coordinator/coordinator_process.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>

#include "comm/base/build_info.h"
#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/base/text/shell_word.h"
#include "comm/http/http_options.h"
#include "comm/http/http_proof.h"
#include "comm/net/network.h"
#include "comm/rpc/asio_transport.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/pulse.h"
#include "comm/run/directory/run_files.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "coordinator/decide/begin_state.h"
#include "coordinator/journal/journal_sqlite.h"
#include "coordinator/report/timeline.h"
#include "coordinator/serve/http_door.h"
#include "coordinator/serve/http_routes.h"
#include "coordinator/serve/run_server.h"
#include "coordinator/term/begin.h"
#include "coordinator/trainer_status/reports.h"

namespace lockstep::coordinator {
namespace {

// Data for the log and the status page besides the server's own answers, kept across all terms.
struct Watch {
  std::string run;
  RunServer* server = nullptr;  // while a term is served
  Timeline timeline;

  LogContext context() const {
    if (server == nullptr) return {run, {}, 0, {}};
    const State& state = server->state();
    return {run, {}, state.generation, state.completed};
  }
};

// One process, one term after the other, at the same addresses.
class Program {
 public:
  Program(SeatRequest request, Logger& logger, Watch& watch)
      : run_dir_(request.run_dir), request_(std::move(request)), logger_(logger), watch_(watch) {
    loop_.on_signals({SIGTERM, SIGINT, SIGUSR1}, [this](int signal) {
      stop_reason_ = std::string("signal SIG") + sigabbrev_np(signal);
      if (watch_.server != nullptr) watch_.server->stop(*stop_reason_);
    });
  }

  // Gives the exit code that the run ended with.
  Result<int> run(BeginMode mode) {
    LOCKSTEP_ASSIGN_OR_RETURN(seat_, Seat::take(request_));
    reports_ = trainer::Reports::start(loop_, logger_, clock_, [this] { return progress(); });
    while (true) {
      LOCKSTEP_RETURN_IF_ERROR(serve_term(mode));
      if (exit_code_) {
        if (seat_->is_superseded()) return *exit_code_;
        if (*exit_code_ == 0) exit_code_ = code_of_end();
        beat();
        return *exit_code_;
      }
      mode = BeginMode::kNextTerm;
    }
  }

 private:
  int code_of_end();
  // Sets exit_code_ unless only the term is over.
  Status serve_term(BeginMode mode);
  Status choose_network(const wire::JobSpec& job);
  Status open_secrets(const wire::JobSpec& job);
  Status check_certificate(const wire::JobSpec& job);
  Status serve(RunServer& server, const Begun& begun);
  Status tell_where(const Begun& begun);
  void beat();
  void beat_while_busy();
  void keep_beating(RunServer& server);
  std::optional<trainer::RunProgress> progress() const;
  void end(int exit_code);
  std::map<std::string, http::Handler> routes(RunServer& server);
  State first_state(const BegunTerm& term);  // takes experience_

  std::string run_dir_;
  SeatRequest request_;
  std::unique_ptr<Seat> seat_;
  Pulse pulse_;
  Logger& logger_;
  Watch& watch_;
  SystemClock clock_;
  rpc::AsioLoop loop_;
  std::shared_ptr<rpc::TokenFile> token_;
  std::shared_ptr<rpc::TlsIdentity> tls_;  // null: control is in the clear
  std::optional<rpc::AsioTransport> transport_;
  std::unique_ptr<CoordinatorMetrics> metrics_;  // of all terms
  rpc::Address control_{"127.0.0.1", 0};
  std::optional<rpc::Address> http_;
  CoordinatorFile endpoint_;  // as in coordinator.json
  JournalMark last_mark_;     // of the journal, when the term ended
  Experience experience_;     // of the term before
  std::optional<std::string> stop_reason_;
  std::optional<int> exit_code_;
  rpc::TimerId pulse_timer_ = 0;
  int64_t beaten_ms_ = 0;
  bool is_pulse_lost_ = false;                 // said once
  std::unique_ptr<trainer::Reports> reports_;  // null: Trainer wants none
};

// Reads the journal again, because the file may differ from what was committed. REQUIRES: the
// journal is closed.
int Program::code_of_end() {
  const bool was_served = !last_mark_.lineage_id.empty();  // else nothing was left to do
  const auto left =
      peek_journal(seat_->journal(), was_served ? JournalCheck::kWhole : JournalCheck::kOpenPart,
                   [this] { beat_while_busy(); });
  if (left.is_ok() && (!was_served || left->mark == last_mark_)) return 0;
  logger_.error(
      "journal_lost",
      "the run is done, but its journal cannot prove it: " +
          (left.is_ok() ? seat_->journal() + " has lost commits" : left.status().message()) +
          ". The weights are in the last checkpoint; `lockstep ckpt verify` checks them");
  return exit_code(Status(Code::kInternal, ""));
}

State Program::first_state(const BegunTerm& term) {
  State state = begin_state(term.beginning, loop_.now_ms(), std::exchange(experience_, {}));
  if (term.is_complete) {
    state.run = RunState::kEnded;
    state.exit_code = 0;
    state.message = "all " + std::to_string(term.beginning.completed) + " steps are done";
  }
  return state;
}

Status Program::serve_term(BeginMode mode) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Begun begun, begin_run(run_dir_, mode, *seat_, clock_, logger_,
                                                         [this] { beat_while_busy(); }));
  watch_.run = begun.term.beginning.run_id;
  if (metrics_ == nullptr) {
    metrics_ = std::make_unique<CoordinatorMetrics>(begun.term.beginning.run_id, build_info());
  }
  const auto on_end = [this](int code) { end(code); };
  const auto on_term_end = [this](const std::string&) { loop_.stop(); };
  RunServer server(
      {loop_, *begun.journal, *begun.history, logger_, clock_, *metrics_, on_end, on_term_end,
       [this] { return seat_->is_superseded(); }, begun.evals.get(),
       [this](const std::string& name) {
         return see_manifest(rundir::file_in(run_dir_, rundir::kCheckpoints), name);
       }},
      begun.options, first_state(begun.term),
      {begun.term.stats, begun.term.earlier_wall_ms, begun.term.beginning.living.has_value()});
  if (server.state().run == RunState::kEnded) LOCKSTEP_RETURN_IF_ERROR(server.keep_summary());
  if (begun.term.is_complete) {
    logger_.info("complete", "nothing is left to do: " + server.state().message +
                                 ", and checkpoint " + begun.term.beginning.base_checkpoint +
                                 " is complete");
    if (mode == BeginMode::kResume) {  // every process is new: none waits for an answer
      exit_code_ = 0;
      return Status::ok();
    }
  }
  watch_.server = &server;
  Status status = serve(server, begun);
  watch_.server = nullptr;
  experience_ = server.state().experience;
  return status;
}

// Takes the address of the term before, so that callers that know it find us; else any free port.
template <typename Listen>
Status listen_again(rpc::Address address, const Listen& listen) {
  Status status = listen(address);
  if (status.is_ok() || address.port == 0) return status;
  address.port = 0;
  return listen(address);
}

// Checks our certificate as callers do: a caller that sees one for another host leaves.
Status Program::check_certificate(const wire::JobSpec& job) {
  const std::string& name = job.comm().advertise();
  const std::string& dialled = name.empty() ? control_.host : name;
  if (!tls_ || tls_->context()->is_for(dialled)) return Status::ok();
  const std::string& directory = job.comm().tls();
  return Status(Code::kConfig,
                directory + "/tls.crt is not for " + dialled +
                    ", the address of this coordinator. Add it with `lockstep certs " +
                    shell_word(directory) + " --hosts " + shell_word(dialled) +
                    "`, or ask whoever made the certificate for a new one");
}

// Where the job wants it to listen; beyond this machine the log says what that means.
Status Program::choose_network(const wire::JobSpec& job) {
  LOCKSTEP_ASSIGN_OR_RETURN(control_.host, rpc::own_address_in(job.comm().network()));
  LOCKSTEP_RETURN_IF_ERROR(check_certificate(job));
  if (rpc::is_loopback_host(control_.host)) return Status::ok();
  const std::string where = "control and data listen on comm.network " + job.comm().network();
  if (tls_ && !job.comm().trusted_network()) {
    logger_.info("network", where + "; both are mutual TLS 1.3");
    return Status::ok();
  }
  const std::string open =
      tls_ ? "control is mutual TLS 1.3; with comm.trusted_network data connections are"
           : "nothing is encrypted: control and data connections are";
  logger_.warn("network", where + "; " + open +
                              " authenticated only by the run's token. Keep this network to "
                              "machines and people that may read and change the training");
  return Status::ok();
}

// Once for all terms: they are read again when they change.
Status Program::open_secrets(const wire::JobSpec& job) {
  if (transport_) return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(
      token_, rpc::TokenFile::open(rundir::file_in(run_dir_, rundir::kToken), logger_));
  LOCKSTEP_ASSIGN_OR_RETURN(tls_, rpc::open_tls(job.comm().tls(), logger_));
  transport_.emplace(loop_, tls_, token_);
  return Status::ok();
}

std::map<std::string, http::Handler> Program::routes(RunServer& server) {
  auto all = http_routes(server, watch_.timeline, [this] { return rpc::to_string(*http_); });
  all[http::kProofPath] = [this](const http::Request& request) {
    if (!request.query.starts_with(http::kNonceKey) ||
        request.query.size() != http::kNonceKey.size() + http::kNonceDigits)
      return http::Response{.status = 400, .body = "give nonce= and 32 hex digits\n"};
    const std::string_view nonce = request.query.substr(http::kNonceKey.size());
    const std::string proof = http::proof_of_token(token_->accepted(true).front(), nonce);
    return http::Response{.content_type = "application/json",
                          .body = "{\"proof\": \"" + proof + "\"}\n"};
  };
  all["/metrics"] = [this, metrics = all["/metrics"]](const http::Request& request) {
    if (tls_) metrics_->tls().expires_in(tls_->expiry_seconds());
    return metrics(request);
  };
  return all;
}

// Where others find this coordinator.
Status Program::tell_where(const Begun& begun) {
  const std::string& name = begun.options.job.comm().advertise();
  const rpc::Address advertised{name.empty() ? control_.host : name, control_.port};
  endpoint_ = {::getpid(), begun.term.beginning.run_id, advertised,
               *http_,     begun.term.beginning.term,   clock_.wall_ms()};
  return write_coordinator_file(run_dir_, endpoint_);
}

Status Program::serve(RunServer& server, const Begun& begun) {
  LOCKSTEP_RETURN_IF_ERROR(open_secrets(begun.options.job));
  LOCKSTEP_RETURN_IF_ERROR(choose_network(begun.options.job));
  LOCKSTEP_RETURN_IF_ERROR(listen_again(control_, [&](const rpc::Address& address) {
    return server.listen(*transport_, address, token_, begun.options.job.comm().advertise());
  }));
  control_ = server.control_address();
  LOCKSTEP_ASSIGN_OR_RETURN(
      http::HttpServer::Options options,
      http::coordinator_http_options(begun.options.job, run_dir_, tls_, logger_));
  const bool trains_already = http_.has_value() || begun.term.beginning.living.has_value();
  if (!http_) http_ = options.address;
  const auto serve_http = [&, options](const rpc::Address& address) mutable {
    options.address = address;
    return http::HttpServer::start(loop_, options, routes(server), logger_);
  };
  HttpDoor http(loop_, logger_, serve_http, [&] {
    http_ = http.address();
    const Status told = tell_where(begun);
    if (!told.is_ok()) logger_.warn("address_not_written", told.message());
  });
  LOCKSTEP_RETURN_IF_ERROR(http.open(*http_, trains_already));
  http_ = http.address();
  LOCKSTEP_RETURN_IF_ERROR(tell_where(begun));
  logger_.info("serving",
               "control at " + rpc::to_string(control_) + ", HTTP at " + rpc::to_string(*http_));
  if (stop_reason_) server.stop(*stop_reason_);
  pulse_.term = begun.term.beginning.term;
  keep_beating(server);
  loop_.run();
  loop_.cancel(pulse_timer_);
  last_mark_ = begun.journal->mark();
  return Status::ok();
}

// Shows processes that cannot reach us that we are there, or that the run has ended.
void Program::beat() {
  beaten_ms_ = clock_.monotonic_ms();
  ++pulse_.count;
  pulse_.exit_code = exit_code_;
  const Status written = write_pulse(run_dir_, pulse_);
  if (!written.is_ok() && !is_pulse_lost_) logger_.warn("pulse_not_written", written.message());
  is_pulse_lost_ = !written.is_ok();
}

// Before a term serves, no process can reach us, and half a minute without a beat would be our end.
void Program::beat_while_busy() {
  const bool is_due = clock_.monotonic_ms() - beaten_ms_ >= kPulseMs;
  if (is_due && !seat_->is_superseded()) beat();
}

void Program::keep_beating(RunServer& server) {
  if (server.end_if_superseded()) return;
  beat();
  // A process that comes later would not find us without this file.
  if (::access(rundir::file_in(run_dir_, rundir::kCoordinator).c_str(), F_OK) != 0)
    (void)write_coordinator_file(run_dir_, endpoint_);
  server.beat();
  pulse_timer_ = loop_.call_after(kPulseMs, [this, &server] { keep_beating(server); });
}

// The progress, if this coordinator still has the run: another one reports by itself.
std::optional<trainer::RunProgress> Program::progress() const {
  if (watch_.server == nullptr || seat_->is_superseded()) return std::nullopt;
  return watch_.server->progress();
}

void Program::end(int exit_code) {
  exit_code_ = exit_code;
  if (reports_ == nullptr) return loop_.stop();
  reports_->finish([this] { loop_.stop(); });
}

// The newest complaint of this process.
void leave_words(const Timeline& timeline, size_t before, int descriptor) {
  const auto& events = timeline.events();
  for (size_t i = events.size(); i > std::min(before, events.size()); --i) {
    if (events[i - 1].level == "info") continue;
    const std::string& words = events[i - 1].message;
    (void)!::pwrite(descriptor, words.data(), words.size(), 0);
    return;
  }
}

}  // namespace

int run_coordinator(SeatRequest request, BeginMode mode, int last_words) {
  allow_many_descriptors();
  const auto run_dir = absolute_path(request.run_dir);
  if (!run_dir.is_ok()) {
    std::cerr << "coordinator: " << run_dir.status().message() << "\n";
    return exit_code(run_dir.status());
  }
  Watch watch;
  const auto context = [&watch] { return watch.context(); };
  const std::string log_path = *run_dir + kLogName;
  watch.timeline.add_tail_of(log_path);
  auto logger = open_json_logger(log_path, "coordinator", true, context);
  if (!logger.is_ok()) {
    std::cerr << "coordinator: " << logger.status().message() << "\n";
    return exit_code(logger.status());
  }
  const size_t before = watch.timeline.events().size();
  TimelineLogger noting(**logger, watch.timeline, context);
  const auto ended = [&](int code) {
    if (code != 0 && last_words >= 0) leave_words(watch.timeline, before, last_words);
    return code;
  };
  request.run_dir = *run_dir;
  Program program(std::move(request), noting, watch);
  const auto code = program.run(mode);
  if (code.is_ok()) return ended(*code);
  if (code.status().code() == Code::kRefused) {  // as when it had been superseded later
    noting.info("superseded", code.status().message());
    return exit_code(Status(Code::kCheckpointed, ""));
  }
  noting.error("not_started", code.status().message());
  return ended(exit_code(code.status()));
}

}  // namespace lockstep::coordinator
