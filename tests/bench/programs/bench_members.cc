// Puts many members on a coordinator that waits for one more; tests/bench/load.py drives it.
//
//     bench_members --run-dir DIR --prepare 10001                  writes what a coordinator reads
//     bench_members --run-dir DIR --members 5000 --name a [--first 0]
//
// Prints one JSON line an event: joined, beats (seconds at one heartbeat a second each), burst
// (heartbeats as fast as they are taken), lost, back; with --train-steps: joined, reported (the
// records of so many steps are acknowledged). Ends when its standard input ends.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "comm/base/clock.h"
#include "comm/base/descriptors.h"
#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/rpc/auth.h"
#include "comm/run/directory/run_files.h"
#include "comm/tls/tls_identity.h"
#include "tests/bench/programs/load_members.h"

namespace lockstep::bench {
namespace {

struct Arguments {
  std::string run_dir;
  std::string name = "load";
  uint32_t prepare = 0;  // workers of the run to prepare; 0: none
  uint32_t members = 1000;
  uint32_t first = 0;
  uint32_t beat_seconds = 10;
  uint32_t burst = 20;
  uint32_t train_steps = 0;
  uint32_t batch_steps = 100;
  std::string tls;
};

constexpr int64_t kSecondMs = 1'000;
constexpr int64_t kPatienceMs = 120'000;

int64_t percentile(std::vector<int64_t> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<long>(at), values.end());
  return values[at];
}

bool stdin_has_ended() {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  if (::poll(&in, 1, 0) <= 0) return false;
  char byte = 0;
  return ::read(STDIN_FILENO, &byte, 1) <= 0;
}

// A run that waits for all its workers, so the benchmark measures only membership.
Status prepare(const Arguments& arguments) {
  constexpr uint64_t kSamples = 1'000'000;
  wire::JobSpec job;
  job.set_job("load");
  job.mutable_model()->set_name("mlp");
  job.mutable_train()->set_global_batch(arguments.prepare);
  job.mutable_train()->set_slots(arguments.prepare);
  job.mutable_train()->set_max_steps(arguments.train_steps + 1);  // so the run never ends
  job.mutable_comm()->set_numerics("exact");
  job.mutable_comm()->set_bucket_mb(1);
  job.mutable_comm()->set_tls(arguments.tls);
  job.mutable_cluster()->set_workers(arguments.prepare);
  job.mutable_cluster()->set_start_timeout_s(3'600);
  job.mutable_cluster()->set_lease_s(30);
  job.mutable_cluster()->set_grace_s(10);
  job.mutable_cluster()->set_min_workers(arguments.prepare);
  job.mutable_cluster()->set_min_wait_s(3'600);
  job.mutable_metrics()->set_listen("127.0.0.1:0");
  wire::DataFacts facts;
  facts.set_train_fingerprint("load");
  facts.set_train_samples(kSamples);
  const std::string& dir = arguments.run_dir;
  std::error_code error;
  for (const char* sub : {"/logs", "/checkpoints", "/cache"})
    std::filesystem::create_directories(dir + sub, error);
  LOCKSTEP_RETURN_IF_ERROR(rpc::create_token_file(dir + "/token").status());
  LOCKSTEP_RETURN_IF_ERROR(write_data_facts(dir, facts));
  return write_job_spec(dir, job);
}

Result<LoadMembers::Options> make_options(const Arguments& arguments) {
  LoadMembers::Options options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.token, rpc::read_token_file(arguments.run_dir + "/token"));
  LOCKSTEP_ASSIGN_OR_RETURN(*options.hello.mutable_facts(), read_data_facts(arguments.run_dir));
  options.hello.set_node(arguments.name);
  options.hello.set_pid(1'000'000 + arguments.first);
  options.hello.set_local_rank(arguments.first);
  // As long as a worker's address, because every member is told every address.
  options.hello.mutable_data()->set_host_id("01234567-89ab-cdef-0123-456789abcdef");
  options.hello.mutable_data()->set_unix_name("lockstep-0123456789abcdef");
  options.hello.mutable_data()->set_tcp("10.200.100.50:40000");
  options.hello.set_flat_elements(64);
  options.hello.add_tensor_bounds(0);
  options.hello.add_tensor_bounds(64);
  options.members = arguments.members;
  options.train_steps = arguments.train_steps;
  options.batch_steps = arguments.batch_steps;
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, read_job_spec(arguments.run_dir));
  options.slots = job.train().slots();
  options.address = [dir = arguments.run_dir]() -> Result<rpc::Address> {
    LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(dir));
    return file.control;
  };
  return options;
}

class Bench {
 public:
  Bench(const Arguments& arguments, LoadMembers::Options options,
        std::shared_ptr<rpc::TlsIdentity> tls)
      : arguments_(arguments),
        transport_(loop_, std::move(tls)),
        members_(transport_, std::move(options)) {}

  int run() {
    const int64_t begin_ms = loop_.now_ms();
    if (!run_until([&] { return members_.registered() == arguments_.members; }, kPatienceMs)) {
      std::fprintf(stderr, "bench_members: only %u of %u joined\n", members_.registered(),
                   arguments_.members);
      return 1;
    }
    say("joined", loop_.now_ms() - begin_ms, members_.take_round_trips_us());
    if (arguments_.train_steps > 0) {
      report_steps();
    } else {
      beat_for(int64_t{arguments_.beat_seconds} * kSecondMs);
      burst();
    }
    wait_for_losses();
    return 0;
  }

 private:
  bool run_until(const std::function<bool()>& done, int64_t ms) {
    const int64_t until_ms = loop_.now_ms() + ms;
    while (!done() && loop_.now_ms() < until_ms) loop_.run_one(10);
    return done();
  }

  void say(const char* event, int64_t ms, const std::vector<int64_t>& us) const {
    std::printf(
        "{\"event\":\"%s\",\"members\":%u,\"ms\":%lld,\"p50_us\":%lld,\"p99_us\":%lld,"
        "\"heartbeats\":%llu,\"reported\":%u,\"record_bytes\":%llu}\n",
        event, members_.registered(), static_cast<long long>(ms),
        static_cast<long long>(percentile(us, 0.5)), static_cast<long long>(percentile(us, 0.99)),
        static_cast<unsigned long long>(members_.heartbeats()), members_.reported(),
        static_cast<unsigned long long>(members_.record_bytes()));
    std::fflush(stdout);
  }

  // Sends one heartbeat a second for each member, as workers do; a few are echoes.
  void beat_for(int64_t ms) {
    const int64_t begin_ms = loop_.now_ms();
    for (int64_t next_ms = begin_ms; next_ms < begin_ms + ms; next_ms += kSecondMs) {
      members_.beat();
      members_.probe(/*every=*/50);
      run_until([&] { return loop_.now_ms() >= next_ms + kSecondMs; }, ms);
    }
    say("beats", loop_.now_ms() - begin_ms, members_.take_round_trips_us());
  }

  void report_steps() {
    const int64_t begin_ms = loop_.now_ms();
    while (members_.reported() < arguments_.members && loop_.now_ms() < begin_ms + kPatienceMs) {
      members_.beat();
      run_until([&] { return members_.reported() == arguments_.members; }, kSecondMs);
    }
    say("reported", loop_.now_ms() - begin_ms, {});
  }

  void burst() {
    const int64_t begin_ms = loop_.now_ms();
    members_.burst(arguments_.burst);
    run_until([&] { return members_.is_burst_over(); }, kPatienceMs);
    say("burst", loop_.now_ms() - begin_ms, members_.take_round_trips_us());
  }

  void wait_for_losses() {
    while (!stdin_has_ended()) {
      const int64_t begin_ms = loop_.now_ms();
      if (!run_until([&] { return members_.registered() < arguments_.members; }, kSecondMs)) {
        members_.beat();
        continue;
      }
      const int64_t lost_ms = loop_.now_ms();
      say("lost", lost_ms - begin_ms, {});
      run_until([&] { return members_.registered() == arguments_.members; }, kPatienceMs);
      say("back", loop_.now_ms() - lost_ms, members_.take_round_trips_us());
    }
  }

  const Arguments arguments_;
  rpc::AsioLoop loop_;
  rpc::AsioTransport transport_;
  LoadMembers members_;
};

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  using namespace lockstep;  // NOLINT: a program of one file
  bench::Arguments arguments;
  CLI::App app("Many members on one coordinator.", "bench_members");
  app.add_option("--run-dir", arguments.run_dir, "directory of the run")->required();
  app.add_option("--prepare", arguments.prepare, "write a run of so many workers, and end");
  app.add_option("--members", arguments.members, "how many");
  app.add_option("--first", arguments.first, "number of the first");
  app.add_option("--name", arguments.name, "their node");
  app.add_option("--beat-seconds", arguments.beat_seconds, "how long at one heartbeat a second");
  app.add_option("--burst", arguments.burst, "heartbeats of each, as fast as they are taken");
  app.add_option("--train-steps", arguments.train_steps, "of which every member reports records");
  app.add_option("--batch-steps", arguments.batch_steps, "in a batch of records; at most 100")
      ->check(CLI::Range(1, limits::kRecordBatchSteps));
  app.add_option("--tls", arguments.tls, "directory of certificates (comm.tls)");
  CLI11_PARSE(app, argc, argv);
  allow_many_descriptors();
  if (arguments.prepare > 0) {
    const Status prepared = bench::prepare(arguments);
    if (!prepared.is_ok()) std::fprintf(stderr, "bench_members: %s\n", prepared.message().c_str());
    return exit_code(prepared);
  }
  auto options = bench::make_options(arguments);
  if (!options.is_ok()) {
    std::fprintf(stderr, "bench_members: %s\n", options.status().message().c_str());
    return exit_code(options.status());
  }
  const auto logger = null_logger();
  auto tls = rpc::open_tls(arguments.tls, *logger);
  if (!tls.is_ok()) {
    std::fprintf(stderr, "bench_members: %s\n", tls.status().message().c_str());
    return exit_code(tls.status());
  }
  return bench::Bench(arguments, std::move(options).value(), std::move(tls).value()).run();
}
