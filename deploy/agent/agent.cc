#include "deploy/agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "comm/base/host_name.h"
#include "comm/base/limits.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/client.h"
#include "comm/run/directory/run_files.h"
#include "comm/wire/control.pb.h"
#include "deploy/agent/after_loop.h"
#include "deploy/agent/agent_http.h"
#include "deploy/agent/agent_messages.h"
#include "deploy/agent/exit_decision.h"
#include "deploy/agent/gpu_places.h"
#include "deploy/agent/hosted_coordinator.h"
#include "deploy/agent/node_notices.h"
#include "deploy/agent/process.h"
#include "deploy/agent/stop_signal_watch.h"
#include "deploy/agent/worker_slots.h"

namespace lockstep {
namespace {

constexpr int64_t kReadFirstMs = 200;

int code_of(const ProcessEnd& end) {
  return end.signal != 0 ? 70 : end.exit_code;
}

}  // namespace

struct Agent::Impl {
  Impl(AgentOptions o, Logger& l)
      : options(std::move(o)),
        logger(l),
        transport(loop, options.tls, options.token),
        workers({options.worker, options.run_dir, options.node, options.max_crashes,
                 options.max_preemptions, options.first_local_rank, options.agents_here,
                 options.own_gpus, options.log_node, options.preload,
                 options.job.comm().backend() == "mpi"},
                logger),
        coordinator({options.coordinator_program, options.run_dir, options.node, options.log_node,
                     options.job.comm().advertise().empty()},
                    logger) {}

  // ---- workers ----

  void set_wanted(uint32_t wanted) {
    const std::vector<uint32_t> places = workers.set_wanted(wanted);
    if (gpus != nullptr) gpus->tell();
    for (const uint32_t place : places)
      if (!workers.hold_if_unfit(place)) start(place);
  }

  void start(uint32_t place) {
    const Status status = workers.start(place, loop.now_ms());
    if (!status.is_ok()) on_end(workers.not_started(place, status, loop.now_ms()));
  }

  void reap() {
    for (Reaped reaped = reap_one(); reaped.pid > 0; reaped = reap_one()) {
      if (is_coordinator(reaped)) continue;
      const auto worker = workers.ended(reaped, goodbye, stopping || leaving, loop.now_ms());
      if (worker) on_end(*worker);
    }
    if (workers.all_ended()) begin_end();
  }

  void on_end(const WorkerEnd& worker) {
    const ExitDecision& decision = worker.decision;
    const std::string name = "worker " + std::to_string(worker.local_rank);
    const std::string message = name + " (pid " + std::to_string(worker.pid) + ") " +
                                (worker.pid == 0 ? "could not be started" : worker.end.text());
    if (decision.action == ExitAction::kExpected) {
      logger.info("worker_ended", message, {{"reason", decision.reason}});
    } else {
      ++deaths;
      logger.error(
          "worker_died",
          worker.last_words.empty() ? message : message + "; it said: " + worker.last_words,
          {{"reason", decision.reason}});
    }
    if (const std::string failed = failure_after_loop(worker); !failed.empty()) {
      logger.error("script_failed_after_loop", failed);
      after_loop = worker.end.is_death() ? 70 : worker.end.exit_code;
    }
    if (decision.action == ExitAction::kReport && first_failure == 0)
      first_failure = code_of(worker.end);
    tell(exit_message(worker));
    if (decision.action == ExitAction::kRestart) restart(worker.place, decision.pause_ms);
  }

  void restart(uint32_t place, int64_t pause_ms) {
    if (pause_ms == 0) return start(place);
    loop.call_after(pause_ms, [this, place] {
      if (workers.waits_for_restart(place)) start(place);
    });
  }

  void kill_after(int64_t delay_ms, const char* why) {
    loop.call_after(delay_ms, [this, why] {
      if (goodbye || stopping) coordinator.signal(SIGKILL);  // it has had its time
      if (workers.all_ended()) return;
      logger.warn("workers_killed", std::string("killing the workers that are left: ") + why);
      workers.signal_all(SIGKILL);
    });
  }

  // ---- GPUs ----

  void look_at_gpus(int64_t wait_ms) {
    if (stopping || goodbye) return;
    gpus->look(wait_ms);
    loop.call_after(options.gpu_look_ms, [this] { look_at_gpus(limits::kGpuSampleWaitMs); });
  }

  void open_gpus() {
    const std::string& mode = options.job.cluster().gpu_health();
    if (!options.uses_gpus || mode == "off") return;
    gpus = std::make_unique<GpuPlaces>(
        GpuPlaces::Options{options.nvml_library, options.gpu_of_number, options.agents_here == 1,
                           mode != "tell"},
        workers, logger, [this](uint32_t place) { start(place); },
        [this](const wire::Envelope& notice) { send(notice); });
    look_at_gpus(limits::kGpuFirstLookMs);
  }

  // ---- the cloud ----

  // Its workers leave between two steps; the agent stays until the run ends or the machine goes,
  // and with it a coordinator that it hosts, or whose end would end the run.
  void leave() {
    if (stopping || goodbye || std::exchange(leaving, true)) return;
    (void)workers.set_wanted(0);
    if (client->is_ready()) hello();
    workers.signal_all(SIGTERM);
  }

  // ---- the end ----

  void on_signal(int signal) {
    if (signal == SIGCHLD) return reap();
    if (signal == SIGTSTP) return suspend();
    if (signal == SIGCONT) return signal_all(SIGCONT);
    if (signal == SIGUSR2) return on_coordinator_end();
    logger.info("stop_requested", "telling the workers to stop", {{"signal", signal}});
    const bool asks_again = stop_signals.asks_again(loop.now_ms());
    if (stopping && signal == SIGINT) {
      if (asks_again) workers.signal_all(SIGKILL);
      return;
    }
    const int told = signal == SIGUSR1 ? SIGUSR1 : SIGTERM;
    if (options.stop_delay_ms == 0) return stop(told);
    loop.call_after(options.stop_delay_ms, [this, told] {
      if (!stopping && !goodbye) stop(told);
    });
  }

  // Without a Goodbye all here would wait in vain. A Goodbye that has arrived is read first.
  void on_coordinator_end() {
    loop.call_after(kReadFirstMs, [this] {
      if (goodbye || stopping || client->is_ready()) return;
      logger.info("stop_requested", "the coordinator has ended without a word to this agent");
      stop(SIGTERM);
    });
  }

  // Without its agent the run does not go on here: Ctrl-Z in a terminal.
  void suspend() {
    signal_all(SIGSTOP);
    ::raise(SIGSTOP);
  }

  void signal_all(int signal) {
    workers.signal_all(signal);
    coordinator.signal(signal);
  }

  void stop(int signal) {
    workers.forget_restarts();
    workers.signal_all(signal);
    coordinator.signal(SIGTERM);  // with it the run goes: a checkpoint, and 75
    if (!stopping) kill_after(options.grace_ms, "the grace time is over");
    stopping = true;
    if (workers.all_ended()) begin_end();
  }

  // No worker is left here (agent.h, 4 and 7).
  void begin_end() {
    const bool is_connected = client != nullptr && client->is_ready();
    if (coordinator.is_running()) return;  // its end brings us here again
    if (goodbye || (stopping && !is_connected)) return loop.stop();
    if (is_connected && !stopping) return;
    int64_t wait_ms = was_ready ? limits::kCoordinatorAwayMs : options.absent_wait_ms;
    if (stopping) wait_ms = options.stopped_wait_ms;
    loop.cancel(end_timer);
    end_timer = loop.call_after(wait_ms, [this] {
      const bool is_alone = stopping || !client->is_ready();
      if (workers.all_ended() && is_alone && !coordinator.is_running()) loop.stop();
    });
  }

  void on_goodbye(int exit_code, const std::string& message) {
    if (goodbye) return;
    goodbye = true;
    goodbye_code = exit_code;
    // If the coordinator dies before it has printed the reason, this log alone has it.
    if (is_failure(exit_code))
      logger.warn("goodbye", message, {{"exit_code", goodbye_code}});
    else
      logger.info("goodbye", message, {{"exit_code", goodbye_code}});
    workers.forget_restarts();
    // A worker that was started while the run ended may not hear of the end; the others have heard.
    const int64_t since_ms = loop.now_ms() - limits::kQuickDeathMs;
    loop.call_after(std::min(options.leave_ms, limits::kQuickDeathMs),
                    [this, since_ms] { workers.signal_unheard(since_ms, SIGKILL); });
    kill_after(options.leave_ms, "the run is over");
    if (workers.all_ended()) begin_end();
  }

  // ---- the coordinator ----

  bool is_coordinator(const Reaped& reaped) {
    const auto ended = coordinator.ended(reaped, loop.now_ms());
    if (ended.restart_after_ms && !stopping && !goodbye)
      loop.call_after(*ended.restart_after_ms, [this] { coordinator.start_again(loop.now_ms()); });
    return ended.was_ours;
  }

  // Whether the run has a coordinator at all; one that was never there cannot be lost.
  void look() {
    loop.call_after(kPulseLookMs, [this] { look(); });
    workers.bound_logs();
    if (stopping || goodbye || !was_ready) return;
    if (client->is_ready()) return coordinator.connected();
    const auto exit_code = coordinator.look(loop.now_ms());
    if (exit_code) on_goodbye(*exit_code, "the run directory says that the run has ended");
  }

  void send(const wire::Envelope& envelope) {
    if (client != nullptr && client->is_ready()) (void)client->send(envelope);
  }

  void tell(wire::Envelope exit) {
    send(exit);
    exits.add(std::move(exit));
  }

  void connect() {
    rpc::RpcClient::Options client_options;
    client_options.address = [this]() -> Result<rpc::Address> {
      LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(options.run_dir));
      return file.control;
    };
    client_options.token = options.token;
    client_options.silence_ms = limits::kCoordinatorSilentMs;
    client_options.jitter_seed = static_cast<uint64_t>(::getpid());
    client = std::make_unique<rpc::RpcClient>(
        transport, std::move(client_options),
        rpc::RpcClient::Handlers{
            [this] { hello(); }, [this](wire::Envelope&& envelope) { on_message(envelope); },
            [this](const Status& why) {
              logger.info("coordinator_lost", why.message());
              if (workers.all_ended()) begin_end();
            },
            [this](const Status& why) { logger.error("coordinator_refused", why.message()); },
            [this](const Status& why) { logger.warn("coordinator_distrusted", why.message()); },
            [this](const Status& why) { on_trouble(why); }});
  }

  // A coordinator that said goodbye is gone for good; workers may still run code after their loop.
  void on_trouble(const Status& why) {
    if (goodbye) return;
    const std::string what = "the agent of " + options.node + " " + why.message();
    logger.warn("coordinator_unreachable", what);
    if (options.tell) options.tell(what);
  }

  void hello() {
    was_ready = true;
    wire::Envelope envelope;
    auto& hello = *envelope.mutable_agent_hello();
    const auto file = read_coordinator_file(options.run_dir);
    if (file.is_ok()) {
      hello.set_run_id(file->run_id);
      http.open(file->run_id);
    }
    if (const std::string address = http.address(); !address.empty())
      hello.set_metrics_address(address);
    hello.set_node(options.node);
    hello.set_pid(static_cast<uint32_t>(::getpid()));
    hello.set_workers(workers.wanted());
    hello.set_machine(machine_id());
    const std::set<uint32_t> living = list_living(workers.living(), &hello);
    (void)client->send(envelope);
    // Before the exits: an exit may end the run if no place is known that could be called.
    if (gpus != nullptr) gpus->repeat();
    notices.repeat();
    exits.repeat(living, [this](const wire::Envelope& exit) { (void)client->send(exit); });
  }

  void on_message(const wire::Envelope& envelope) {
    if (envelope.has_stop()) {
      logger.info("stop_requested", envelope.stop().reason());
      stop(SIGTERM);
    } else if (envelope.has_goodbye()) {
      on_goodbye(static_cast<int>(envelope.goodbye().exit_code()), envelope.goodbye().message());
    } else if (envelope.has_set_workers() && !stopping && !goodbye && !leaving) {
      const uint32_t wanted = envelope.set_workers().workers();
      logger.info("workers_wanted", "workers wanted here: " + std::to_string(wanted));
      set_wanted(wanted);
      if (gpus != nullptr) gpus->start_held(envelope.set_workers().unfit_local_ranks());
    } else if (envelope.has_kill_worker()) {
      kill_worker(envelope.kill_worker());
    }
  }

  // It ends like any other that was killed: it is reaped, told, and started again.
  void kill_worker(const wire::KillWorker& message) {
    const std::string pid = std::to_string(message.pid());
    if (workers.kill(static_cast<pid_t>(message.pid())))
      logger.warn("worker_killed", "killed the worker with pid " + pid + ": " + message.reason());
    else
      logger.info("worker_not_killed", "no running worker here has pid " + pid);
  }

  int run() {
    loop.on_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT},
                    [this](int s) { on_signal(s); });
    open_gpus();
    notices.watch();
    set_wanted(options.workers);
    connect();
    look();
    if (workers.all_ended()) begin_end();
    loop.run();
    notices.end();
    client->close();
    if (goodbye) return goodbye_code == 0 ? after_loop : goodbye_code;
    return first_failure;
  }

  AgentOptions options;
  Logger& logger;
  rpc::AsioLoop loop;
  rpc::AsioTransport transport;
  std::unique_ptr<rpc::RpcClient> client;
  WorkerSlots workers;
  HostedCoordinator coordinator;
  AgentHttp http{loop, options, logger, [this](AgentMetrics& metrics) {
                   metrics.workers(workers.living().size(), deaths);
                   if (gpus != nullptr) metrics.verdicts(gpus->verdicts());
                 }};
  std::unique_ptr<GpuPlaces> gpus;  // null: no GPU is watched
  NodeNotices notices{loop, options, logger, [this](const wire::Envelope& notice) { send(notice); },
                      [this] { leave(); }};
  ToldExits exits;
  uint64_t deaths = 0;  // of workers, but for those that were told to go
  rpc::TimerId end_timer = 0;
  StopSignalWatch stop_signals;
  bool was_ready = false;  // the coordinator has been there
  bool leaving = false;    // its machine is to be taken away
  bool stopping = false;
  bool goodbye = false;
  int goodbye_code = 0;
  int first_failure = 0;
  int after_loop = 0;  // the code of a script that failed after its loop; another's is told, too
};

Agent::Agent(AgentOptions options, Logger& logger)
    : impl_(std::make_unique<Impl>(std::move(options), logger)) {}

Agent::~Agent() = default;

int Agent::run() {
  return impl_->run();
}

bool Agent::heard_goodbye() const {
  return impl_->goodbye;
}

bool Agent::was_stopped() const {
  return impl_->stopping;
}

}  // namespace lockstep
