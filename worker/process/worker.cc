#include "worker/process/worker.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "comm/base/build_info.h"
#include "comm/base/clock.h"
#include "comm/base/gpu/gpu_driver.h"
#include "comm/base/hash.h"
#include "comm/base/host_name.h"
#include "comm/base/log.h"
#include "comm/collectives/mpi/mpi_over_host.h"
#include "comm/environment/numa_binding.h"
#include "comm/http/http_options.h"
#include "comm/net/network.h"
#include "comm/rpc/asio_transport.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/evaluation/edge.h"
#include "comm/run/job/job.pb.h"
#include "comm/run/job/predictions.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "data/prefetch/prefetch_policy.h"
#include "metrics/serve/serve_metrics.h"
#include "worker/engine/gpu_environment.h"
#include "worker/process/engine_maker.h"
#include "worker/process/hang_notes.h"
#include "worker/process/metrics_probe.h"
#include "worker/process/nccl_log.h"
#include "worker/process/open_mpi.h"
#include "worker/process/worker_host.h"
#include "worker/session/start_files.h"

namespace lockstep {
namespace {

// Between the last message and the end of the process, so that it leaves.
constexpr int64_t kLastWordsMs = 50;
// A failed worker waits so long for the coordinator's answer.
constexpr int64_t kGoodbyeDeadlineMs = 5'000;
// Without a coordinator for so long a worker gives up.
constexpr int64_t kCoordinatorWaitMs = 600'000;
// The coordinator starts at the same time as we do: look often at first, and never seldom.
constexpr int64_t kMaxBackoffMs = 250;

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

// A name that no other process of the run has: pids are a machine's own, and all machines share the
// directory.
std::string unique_name(uint32_t local_rank) {
  const std::string random = random_bytes(4);
  return std::to_string(local_rank) + "." +
         to_hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()}) + "." +
         std::to_string(::getpid());
}

// The name of the worker's files in RUN_DIR/logs.
std::string process_name(const WorkerOptions& options) {
  return options.log_name.empty() ? "worker-" + std::to_string(options.local_rank)
                                  : options.log_name;
}

// Our NCCL log; empty: there is none, or the site has named a file of its own.
std::string own_nccl_log(const wire::JobSpec& job, const WorkerOptions& options) {
  if (!may_use_nccl(job) || std::getenv("NCCL_DEBUG_FILE") != nullptr) return "";
  return make_nccl_log(options.run_dir, process_name(options));
}

// Before the process has a second thread, which might read the environment meanwhile.
Status prepare_environment(const wire::JobSpec& job, const std::string& nccl_log) {
  LOCKSTEP_RETURN_IF_ERROR(prepare_gpu_environment(job, nccl_debug_file(nccl_log)));
  if (job.comm().backend() != "mpi") return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string interface,
      rpc::open_data_interface(job.comm().network(), job.comm().trusted_network()));
  prepare_mpi_environment(interface);
  return Status::ok();
}

// Half of cluster.hang_s: operations that a hang ends have stood still for longer, and operations
// that a death ends usually for less.
int64_t standstill_ms(const wire::JobSpec& job) {
  const uint32_t hang_s = job.cluster().hang_s();
  return hang_s == 0 ? limits::kStandstillMs : int64_t{hang_s} * 500;
}

// Before the threads and the memory that shall lie there. Empty: the worker computes on no GPU.
std::string bind_to_gpu(const wire::JobSpec& job, const WorkerOptions& options) {
  if (job.cluster().device() != "cuda") return "";
  const char* const wish = std::getenv("LOCKSTEP_NUMA");
  if (wish != nullptr && std::string_view(wish) == "off") return "not bound: LOCKSTEP_NUMA is off";
  const auto number =
      options.gpu_uuid.empty() ? Result<uint32_t>(options.gpu) : find_gpu(options.gpu_uuid);
  if (!number.is_ok()) return "";  // open_gpu() says it
  const auto gpu = identify_gpu(*number);
  if (!gpu.is_ok()) return "";
  NumaSystem system;
  return bind_to_numa_node({gpu->pci, /*keeps_cores=*/options.workers_here == 1}, system);
}

void release_stop_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

void hold_stop_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// The secrets that prove that we belong to the run. Their readers write to the logger.
struct Secrets {
  std::shared_ptr<rpc::TokenFile> token;
  std::shared_ptr<rpc::TlsIdentity> tls;  // null: control is in the clear
};

struct Worker::Impl {
  Impl(WorkerOptions o, wire::JobSpec j, Secrets s, std::unique_ptr<LogPlace> log_place,
       std::unique_ptr<Logger> log, std::unique_ptr<HostContext> c, WorkInHand work,
       std::unique_ptr<EngineMaker> m, std::string nccl_log, std::string numa_words)
      : options(std::move(o)),
        job(std::move(j)),
        place(std::move(log_place)),
        logger(std::move(log)),
        secrets(std::move(s)),
        context(std::move(c)),
        in_hand(std::move(work)),
        prefetch(job.data(),
                 [this](const std::string& what) { logger->info("data_reader", what); }),
        own_name(unique_name(options.local_rank)),
        metrics({job.job(), options.node, options.local_rank}, build_info(), phases, clock),
        probe(metrics, phases, predictions_per_sample(job.model()), *place),
        hang_notes({flight, rundir::log_in(options.run_dir, process_name(options) + ".hang.json"),
                    process_name(options), options.node, std::move(nccl_log), standstill_ms(job)}),
        host({loop, gate, mailbox, *context, *logger, in_hand,
              rundir::log_in(options.run_dir, "worker-" + own_name + ".stacks.txt"),
              [this](int code) { on_end(code); }, options.stack_memory, &hang_notes},
             job),
        numa(std::move(numa_words)),
        maker(std::move(m)) {}

  const WorkerOptions options;
  const wire::JobSpec job;
  const std::unique_ptr<LogPlace> place;  // of the logger, which asks it
  const std::unique_ptr<Logger> logger;
  const Secrets secrets;
  const std::unique_ptr<HostContext> context;
  WorkInHand in_hand;
  data::PrefetchPolicy prefetch;
  const std::string own_name;

  SystemClock clock;
  PhaseClock phases{clock};
  WorkerMetrics metrics;
  MetricsProbe probe;
  FlightRecord flight{clock};
  HangNotes hang_notes;
  std::unique_ptr<FileOps> files = posix_file_ops();
  rpc::AsioLoop loop;
  rpc::AsioTransport transport{loop, secrets.tls, secrets.token};
  ApplyGate gate;
  Mailbox mailbox;
  WorkerHost host;
  std::unique_ptr<http::HttpServer> http;
  std::unique_ptr<Session> session;
  int exit_code = 0;

  const std::string numa;  // where this process is bound; empty: it computes on no GPU
  const std::unique_ptr<EngineMaker> maker;
  MadeEngine made;                 // by train()
  std::unique_ptr<Runner> runner;  // made by train()

  void open_session();
  void open_metrics();
  void on_end(int code);
  Status build();
  Result<std::optional<uint64_t>> wait_for_batch();
  void make_runner(uint64_t global_batch);
  wire::Register make_hello() const;
  void fail(const Status& status);
  void end_stuck(const Status& why);
};

void Worker::Impl::open_session() {
  Session::Options session_options;
  session_options.rpc.address = [this]() -> Result<rpc::Address> {
    LOCKSTEP_ASSIGN_OR_RETURN(CoordinatorFile found, read_coordinator_file(options.run_dir));
    host.set_run_id(found.run_id);
    return found.control;
  };
  session_options.rpc.token = secrets.token;
  session_options.rpc.max_backoff_ms = kMaxBackoffMs;
  session_options.rpc.give_up_after_ms = kCoordinatorWaitMs;
  session_options.rpc.silence_ms = limits::kCoordinatorSilentMs;
  session_options.rpc.jitter_seed = static_cast<uint64_t>(::getpid());
  session_options.heartbeat_ms = heartbeat_interval_ms(job.cluster().lease_s());
  session_options.join_deadline_ms = int64_t{job.cluster().start_timeout_s()} * 1'000;
  session_options.spill_path =
      rundir::file_in(rundir::file_in(options.run_dir, rundir::kCache), "records-" + own_name);
  session = std::make_unique<Session>(transport, std::move(session_options), host, *logger);
}

void Worker::Impl::open_metrics() {
  const auto expose = [this] {
    if (secrets.tls) metrics.tls().expires_in(secrets.tls->expiry_seconds());
    const data::PrefetchFigures read = prefetch.figures();
    metrics.data().show({read.reader, read.reads, read.ahead_bytes});
    return metrics.expose_text();
  };
  http = serve_metrics(loop, http::http_options(job, options.run_dir, secrets.tls, *logger), expose,
                       "worker", *logger);
}

void Worker::Impl::on_end(int code) {
  exit_code = code;
  loop.call_after(kLastWordsMs, [this] { loop.stop(); });
}

Status Worker::Impl::build() {
  LOCKSTEP_ASSIGN_OR_RETURN(made,
                            maker->build({job, options, *logger, clock, metrics,
                                          [this](const BufferLayout& layout, uint32_t regions) {
                                            return context->make_buffer(layout, regions);
                                          },
                                          [this](const Status& why) { end_stuck(why); }}));
  if (made.gpu) in_hand.is_on_gpu(made.gpu->uuid());  // its place keeps it
  return Status::ok();
}

// The batch that the coordinator made of train.global_batch auto; nothing: the run is over.
Result<std::optional<uint64_t>> Worker::Impl::wait_for_batch() {
  if (job.train().global_batch() != 0) return std::optional(job.train().global_batch());
  const auto batch = mailbox.wait_for_batch();
  if (batch) LOCKSTEP_RETURN_IF_ERROR(made.engine->set_global_batch(*batch));
  return batch;
}

void Worker::Impl::make_runner(uint64_t global_batch) {
  Runner::Options runner_options;
  runner_options.job = job;
  runner_options.job.mutable_train()->set_global_batch(global_batch);
  runner_options.facts = made.facts;
  // The legend of the run, and not of the files that this worker reads, which may not say it.
  if (const auto stored = read_data_facts(options.run_dir); stored.is_ok())
    *runner_options.facts.mutable_legend() = stored->legend();
  runner_options.run_dir = options.run_dir;
  runner_options.fingerprint = made.engine->fingerprint();
  runner_options.has_edges = has_edges(made.identity);
  runner_options.connect_deadline_ms = static_cast<int>(job.cluster().start_timeout_s()) * 1'000;
  runner = std::make_unique<Runner>(
      std::move(runner_options),
      Runner::Parts{*made.engine, *context, gate, mailbox, *session, *files, probe, &phases,
                    *logger, [this](const Status& status) { fail(status); }, &in_hand, made.devices,
                    &prefetch, [this] { maker->has_finished(); }, &flight});
}

// The coordinator answers with the run's own end; if it does not, or the run goes on without this
// worker, the failure is the end.
void Worker::Impl::fail(const Status& status) {
  loop.post([this, status] {
    const auto end = [this, status] { session->end(status); };
    host.has_failed([this, end] { loop.post(end); });
    loop.call_after(kGoodbyeDeadlineMs, end);
  });
}

// The training thread cannot say it, and does not come back: the process leaves without it.
void Worker::Impl::end_stuck(const Status& why) {
  const Standing standing = gate.standing();
  logger->error("training_stuck", why.message(), {{"generation", standing.lived}});
  loop.post([this] { host.on_hang(); });
  session->leave(standing.lived, wire::Leave::FAILED, why, standing.applied);
  fail(why);
}

wire::Register Worker::Impl::make_hello() const {
  wire::Register hello;
  hello.set_node(options.node);
  hello.set_local_rank(options.local_rank);
  hello.set_pid(static_cast<uint32_t>(::getpid()));
  hello.set_machine(machine_id());
  hello.set_process(options.process);
  const HostAddress address = context->address();
  hello.mutable_data()->set_host_id(address.host_id);
  hello.mutable_data()->set_unix_name(address.unix_name);
  hello.mutable_data()->set_tcp(address.tcp);
  if (http) hello.set_metrics_address(rpc::to_string(http->address()));
  for (const std::string& line : made.engine->fingerprint())
    hello.mutable_fingerprint()->add_lines(line);
  *hello.mutable_facts() = made.facts;
  hello.set_flat_elements(made.engine->gradient_buffer().layout().elements);
  for (const uint64_t bound : made.engine->tensor_bounds()) hello.add_tensor_bounds(bound);
  hello.set_largest_slot(made.largest_slot);
  if (made.gpu) *hello.mutable_gpu() = *made.gpu;
  if (made.gpu && !numa.empty()) hello.mutable_gpu()->set_numa(numa);
  for (const wire::IdentityFact& fact : made.identity) *hello.add_identity() = fact;
  hello.set_state_hash(made.state_hash);
  hello.set_code_hash(made.code_hash);
  return hello;
}

Worker::Worker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->open_metrics();
  impl_->open_session();
}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::create(const WorkerOptions& options,
                                               std::unique_ptr<EngineMaker> maker) {
  std::error_code error;
  WorkerOptions found = options;
  found.run_dir = std::filesystem::canonical(options.run_dir, error).string();
  if (error) return Status(Code::kNoInput, "there is no run directory " + options.run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(wire::JobSpec job, read_job(found.run_dir));
  const std::string nccl_log = own_nccl_log(job, found);
  LOCKSTEP_RETURN_IF_ERROR(prepare_environment(job, nccl_log));
  const std::string numa = bind_to_gpu(job, found);
  const std::string process = process_name(options);
  std::filesystem::create_directories(rundir::file_in(found.run_dir, rundir::kLogs), error);
  auto place = std::make_unique<LogPlace>(job.job());
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto logger,
      open_json_logger(rundir::log_in(found.run_dir, process + ".log.jsonl"), process,
                       /*echo_to_stderr=*/true, [at = place.get()] { return at->context(); }));
  if (!numa.empty()) logger->info("numa", numa);
  Secrets secrets;
  LOCKSTEP_ASSIGN_OR_RETURN(
      secrets.token, rpc::TokenFile::open(rundir::file_in(found.run_dir, rundir::kToken), *logger));
  LOCKSTEP_ASSIGN_OR_RETURN(secrets.tls, rpc::open_tls(job.comm().tls(), *logger));
  HostOptions host_options;
  host_options.token = secrets.token;
  // Certificates for control are for data too, unless the job says that the network needs none.
  if (!job.comm().trusted_network()) host_options.tls = secrets.tls;
  LOCKSTEP_ASSIGN_OR_RETURN(host_options.tcp_host, rpc::own_address_in(job.comm().network()));
  LOCKSTEP_ASSIGN_OR_RETURN(auto context, HostContext::create(std::move(host_options)));
  if (job.comm().backend() == "mpi") {
    std::unique_ptr<MpiLane> lane;
    if (options.mpi) {
      const bool is_fast = job.comm().numerics() == "fast";
      LOCKSTEP_ASSIGN_OR_RETURN(lane, open_mpi(is_fast));
    }
    context = prefer_mpi(std::move(context), std::move(lane), *logger);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(WorkInHand in_hand, options.in_hand_fd < 0
                                                    ? WorkInHand::make()
                                                    : WorkInHand::attach(options.in_hand_fd));
  return std::unique_ptr<Worker>(new Worker(std::make_unique<Impl>(
      std::move(found), std::move(job), std::move(secrets), std::move(place), std::move(logger),
      std::move(context), std::move(in_hand), std::move(maker), nccl_log, numa)));
}

// A worker that is told to go stops with the others if all are told, or is left out if not.
int Worker::serve() {
  impl_->loop.on_signals({SIGTERM, SIGUSR1}, [this](int signal) {
    const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGUSR1";
    impl_->host.request_stop(name);
    impl_->session->drain(name);
  });
  release_stop_signals();
  impl_->loop.run();
  return impl_->exit_code;
}

void Worker::train() {
  const auto end = [this](const Status& why) {
    impl_->loop.post([this, why] { impl_->session->end(why); });
  };
  if (const Status built = impl_->build(); !built.is_ok()) return end(built);
  impl_->loop.post([this] {
    wire::Register hello = impl_->make_hello();
    hello.set_run_id(impl_->host.run_id());
    impl_->session->begin(std::move(hello));
  });
  const auto batch = impl_->wait_for_batch();
  if (!batch.is_ok()) return end(batch.status());
  if (!*batch) return;
  impl_->make_runner(**batch);
  impl_->loop.post([this] { impl_->host.attach(*impl_->made.engine, *impl_->runner); });
  impl_->runner->run();
  impl_->maker->has_trained();
}

}  // namespace lockstep
