#include "deploy/agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include "comm/rpc/asio_transport.h"
#include "comm/rpc/client.h"
#include "comm/wire/control.pb.h"
#include "deploy/agent/exit_decision.h"
#include "deploy/agent/process.h"
#include "deploy/agent/run_files.h"

namespace lockstep {
namespace {

struct Worker {
  pid_t pid = 0;  // 0: has ended
  uint32_t restarts_left = 0;
};

int code_of(const ProcessEnd& end) {
  return end.signal != 0 ? 70 : end.exit_code;
}

}  // namespace

struct Agent::Impl {
  Impl(AgentOptions o, Logger& l) : options(std::move(o)), logger(l), transport(loop) {}

  std::string output_path(size_t index) const {
    return options.run_dir + "/logs/worker-" + std::to_string(index) + ".stderr";
  }

  Status start_worker(size_t index) {
    const ProcessSpec spec{{options.worker_program, "--run-dir", options.run_dir, "--local-rank",
                            std::to_string(index)},
                           output_path(index),
                           SIGKILL};
    LOCKSTEP_ASSIGN_OR_RETURN(workers[index].pid, start_process(spec));
    logger.info("worker_started", "started worker " + std::to_string(index),
                {{"local_rank", index}, {"pid", workers[index].pid}});
    return Status::ok();
  }

  void signal_workers(int signal) {
    for (const Worker& worker : workers)
      if (worker.pid > 0) ::kill(worker.pid, signal);
  }

  bool all_ended() const {
    for (const Worker& worker : workers)
      if (worker.pid > 0) return false;
    return true;
  }

  void kill_after(int64_t delay_ms, const char* why) {
    loop.call_after(delay_ms, [this, why] {
      if (all_ended()) return;
      logger.warn("workers_killed", std::string("killing the workers that are left: ") + why);
      signal_workers(SIGKILL);
    });
  }

  void on_signal(int signal) {
    if (signal == SIGCHLD) return reap();
    const bool second_interrupt = stopping && signal == SIGINT;
    logger.info("stop_requested", "telling the workers to stop", {{"signal", signal}});
    if (second_interrupt) return signal_workers(SIGKILL);
    signal_workers(signal == SIGUSR1 ? SIGUSR1 : SIGTERM);
    if (!stopping) kill_after(options.grace_ms, "the grace time is over");
    stopping = true;
  }

  void reap() {
    for (Reaped reaped = reap_one(); reaped.pid > 0; reaped = reap_one()) {
      for (size_t i = 0; i < workers.size(); ++i)
        if (workers[i].pid == reaped.pid) on_exit(i, reaped);
    }
    if (all_ended()) begin_end();
  }

  void on_exit(size_t index, const Reaped& reaped) {
    Worker& worker = workers[index];
    worker.pid = 0;
    const ExitDecision decision =
        decide_after_exit({reaped.end, goodbye, stopping, worker.restarts_left});
    const std::string words = last_words(output_path(index));
    const std::string message = "worker " + std::to_string(index) + " (pid " +
                                std::to_string(reaped.pid) + ") " + reaped.end.text();
    if (decision.action == ExitAction::kExpected) {
      logger.info("worker_ended", message, {{"reason", decision.reason}});
    } else {
      logger.error("worker_died", words.empty() ? message : message + "; it said: " + words,
                   {{"reason", decision.reason}});
      if (first_failure == 0) first_failure = code_of(reaped.end);
    }
    report(reaped.pid, reaped.end, words);
    if (decision.action != ExitAction::kRestart) return;
    --worker.restarts_left;
    const Status status = start_worker(index);
    if (!status.is_ok()) logger.error("worker_not_restarted", status.message());
  }

  void report(pid_t pid, const ProcessEnd& end, const std::string& words) {
    wire::Envelope envelope;
    auto& exit = *envelope.mutable_worker_exit();
    exit.set_pid(static_cast<uint32_t>(pid));
    exit.set_exit_code(end.exit_code);
    exit.set_signal(end.signal);
    exit.set_last_words(words);
    exits.push_back(envelope);
    if (client != nullptr && client->is_ready()) (void)client->send(envelope);
  }

  void connect() {
    rpc::RpcClient::Options client_options;
    client_options.address = [this]() -> Result<rpc::Address> {
      LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(options.run_dir));
      return file.control;
    };
    client_options.token = options.token;
    client_options.jitter_seed = static_cast<uint64_t>(::getpid());
    client = std::make_unique<rpc::RpcClient>(
        transport, std::move(client_options),
        rpc::RpcClient::Handlers{
            [this] { hello(); }, [this](wire::Envelope&& envelope) { on_message(envelope); },
            [this](const Status& why) {
              logger.info("coordinator_lost", why.message());
              if (all_ended()) loop.stop();
            },
            [this](const Status& why) { logger.error("coordinator_refused", why.message()); }});
  }

  void hello() {
    was_ready = true;
    wire::Envelope envelope;
    auto& hello = *envelope.mutable_agent_hello();
    const auto file = read_coordinator_file(options.run_dir);
    if (file.is_ok()) hello.set_run_id(file->run_id);
    hello.set_node(options.node);
    hello.set_pid(static_cast<uint32_t>(::getpid()));
    hello.set_workers(options.workers);
    (void)client->send(envelope);
    for (const wire::Envelope& exit : exits) (void)client->send(exit);
  }

  void on_message(const wire::Envelope& envelope) {
    if (envelope.has_stop()) {
      logger.info("stop_requested", envelope.stop().reason());
      signal_workers(SIGTERM);
      if (!stopping) kill_after(options.grace_ms, "the grace time is over");
      stopping = true;
    } else if (envelope.has_goodbye() && !goodbye) {
      goodbye = true;
      goodbye_code = static_cast<int>(envelope.goodbye().exit_code());
      logger.info("goodbye", envelope.goodbye().message(), {{"exit_code", goodbye_code}});
      kill_after(options.leave_ms, "the run is over");
      if (all_ended()) loop.stop();
    }
  }

  // Nobody is left here. The coordinator may not have heard why yet, and may want to say how the
  // run ended; one that was there and is gone says nothing any more.
  void begin_end() {
    if (goodbye || (was_ready && !client->is_ready())) return loop.stop();
    loop.call_after(options.leave_ms, [this] { loop.stop(); });
  }

  int run() {
    loop.on_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1}, [this](int s) { on_signal(s); });
    workers.resize(options.workers);
    for (size_t i = 0; i < workers.size(); ++i) {
      workers[i].restarts_left = options.restarts_per_worker;
      const Status status = start_worker(i);
      if (status.is_ok()) continue;
      logger.error("worker_not_started", status.message());
      first_failure = exit_code(status);
      report(0, {first_failure, 0}, status.message());
      signal_workers(SIGKILL);
      break;
    }
    connect();
    if (all_ended()) begin_end();
    loop.run();
    client->close();
    return goodbye ? goodbye_code : first_failure;
  }

  AgentOptions options;
  Logger& logger;
  rpc::AsioLoop loop;
  rpc::AsioTransport transport;
  std::unique_ptr<rpc::RpcClient> client;
  std::vector<Worker> workers;
  std::vector<wire::Envelope> exits;  // told again to a coordinator that comes back
  bool was_ready = false;             // the coordinator has been there
  bool stopping = false;
  bool goodbye = false;
  int goodbye_code = 0;
  int first_failure = 0;
};

Agent::Agent(AgentOptions options, Logger& logger)
    : impl_(std::make_unique<Impl>(std::move(options), logger)) {}

Agent::~Agent() = default;

int Agent::run() {
  return impl_->run();
}

}  // namespace lockstep
