// How fast ranks on this machine sum a buffer: one child process per rank, host backend.
//
//     bench_all_reduce [--ranks 2] [--rounds 20] [--transport shm|tcp] [--tls DIR] BYTES...
//
// Prints one JSON line per size: the times of every round as rank 0 saw them and the processor time
// it spent, in microseconds, and the time of plain copying by all ranks at once. Each round is
// begin_step and one all_reduce over the whole buffer, between two barriers.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/clock.h"
#include "comm/collectives/host/host_collective.h"

namespace lockstep {
namespace {

constexpr int kConnectMs = 20'000;
constexpr int kWarmUpRounds = 3;
constexpr size_t kAddressBytes = 128;

struct Options {
  uint32_t ranks = 2;
  uint32_t rounds = 20;
  bool tcp = false;
  std::string tls;  // directory of certificates; empty: in the clear
  std::vector<uint64_t> sizes_bytes;
};

struct Channel {
  int up[2] = {-1, -1};
  int down[2] = {-1, -1};
};

void must(const Status& status) {
  if (status.is_ok()) return;
  std::fprintf(stderr, "bench_all_reduce: %s\n", status.message().c_str());
  std::exit(1);
}

void write_all(int fd, const void* data, size_t bytes) {
  LOCKSTEP_CHECK(write(fd, data, bytes) == static_cast<ssize_t>(bytes), "short write to a pipe");
}

bool read_all(int fd, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = read(fd, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

struct WireAddress {
  char host_id[kAddressBytes] = {};
  char unix_name[kAddressBytes] = {};
  char tcp[kAddressBytes] = {};
};

// Exchanges all addresses through the parent, which only passes them on.
std::vector<PeerAddress> exchange(const HostAddress& mine, const Channel& channel, uint32_t ranks) {
  WireAddress wire;
  std::strncpy(wire.host_id, mine.host_id.c_str(), kAddressBytes - 1);
  std::strncpy(wire.unix_name, mine.unix_name.c_str(), kAddressBytes - 1);
  std::strncpy(wire.tcp, mine.tcp.c_str(), kAddressBytes - 1);
  write_all(channel.up[1], &wire, sizeof wire);
  std::vector<PeerAddress> peers;
  for (uint32_t r = 0; r < ranks; ++r) {
    LOCKSTEP_CHECK(read_all(channel.down[0], &wire, sizeof wire), "the parent is gone");
    peers.push_back({r + 1, {wire.host_id, wire.unix_name, wire.tcp}});
  }
  return peers;
}

class Rank {
 public:
  Rank(const Options& options, uint32_t rank, uint64_t bytes, const Channel& channel)
      : options_(options), rank_(rank) {
    const uint64_t elements = (bytes / sizeof(float) + 15) / 16 * 16;
    auto tls = rpc::open_tls(options.tls, *logger_);
    must(tls.status());
    auto context =
        HostContext::create({.token = "benchmark", .tls = *tls, .force_tcp = options.tcp});
    must(context.status());
    context_ = std::move(*context);
    auto buffer = context_->make_buffer({elements, elements, elements}, 1);
    must(buffer.status());
    buffer_ = std::move(*buffer);
    const auto peers = exchange(context_->address(), channel, options.ranks);
    auto collective = context_->connect(1, rank, rank + 1, peers, kConnectMs);
    must(collective.status());
    collective_ = std::move(*collective);
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < options.ranks; ++r) runs.push_back({r, r + 1});
    merge_ = make_step_merge(runs, options.ranks, std::vector<bool>(options.ranks, true));
  }

  void run() {
    const uint64_t elements = buffer_->layout().elements;
    std::fill_n(buffer_->partial(0), elements, 1.0F);
    std::vector<double> reduce_us;
    std::vector<double> copy_us;
    std::vector<double> cpu_us;
    for (uint32_t round = 0; round < options_.rounds + kWarmUpRounds; ++round) {
      const double cpu_begin = cpu_now_us();
      const double reduced = time_one(round, [&](const Tag& tag) {
        must(collective_->begin_step(tag, merge_));
        must(collective_->all_reduce(tag, {0, elements}));
      });
      const double cpu = cpu_now_us() - cpu_begin;
      LOCKSTEP_CHECK(collective_->reduced()[elements - 1] == static_cast<float>(options_.ranks),
                     "wrong sum");
      const double copied = time_one(round, [&](const Tag& tag) {
        std::memcpy(buffer_->result(), buffer_->partial(0), elements * sizeof(float));
        must(collective_->barrier(tag));
      });
      if (round < kWarmUpRounds) continue;
      reduce_us.push_back(reduced);
      cpu_us.push_back(cpu);
      copy_us.push_back(copied);
    }
    if (rank_ != 0) return;
    std::printf("{\"bytes\": %llu, \"ranks\": %u, \"transport\": \"%s\", \"us\": [",
                static_cast<unsigned long long>(elements) * sizeof(float), options_.ranks,
                !options_.tls.empty() ? "tls"
                : options_.tcp        ? "tcp"
                                      : "shm");
    print_list(reduce_us);
    std::printf("], \"cpu_us\": [");
    print_list(cpu_us);
    std::printf("], \"copy_us\": [");
    print_list(copy_us);
    std::printf("]}\n");
  }

 private:
  template <typename Work>
  double time_one(uint32_t round, const Work& work) {
    const Tag tag = {1, round, Phase::kTrain, 0, 0};
    must(collective_->barrier(tag));
    const SystemClock clock;
    const int64_t begin = clock.monotonic_ns();
    work(tag);
    return static_cast<double>(clock.monotonic_ns() - begin) / 1e3;
  }

  static double cpu_now_us() {
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  }

  static void print_list(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.2f", i > 0 ? ", " : "", values[i]);
  }

  const Options options_;
  const uint32_t rank_;
  const std::unique_ptr<Logger> logger_ = null_logger();
  std::unique_ptr<HostContext> context_;
  std::unique_ptr<GradientBuffer> buffer_;
  std::unique_ptr<Collective> collective_;
  StepMerge merge_;
};

void run_size(const Options& options, uint64_t bytes) {
  std::vector<Channel> channels(options.ranks);
  for (Channel& channel : channels) {
    LOCKSTEP_CHECK(pipe(channel.up) == 0 && pipe(channel.down) == 0, "pipe failed");
  }
  std::fflush(stdout);
  for (uint32_t r = 0; r < options.ranks; ++r) {
    if (fork() != 0) continue;
    Rank(options, r, bytes, channels[r]).run();
    std::fflush(stdout);
    _exit(0);
  }
  std::vector<WireAddress> addresses(options.ranks);
  for (uint32_t r = 0; r < options.ranks; ++r) {
    LOCKSTEP_CHECK(read_all(channels[r].up[0], &addresses[r], sizeof addresses[r]), "a rank died");
  }
  for (uint32_t r = 0; r < options.ranks; ++r) {
    write_all(channels[r].down[1], addresses.data(), addresses.size() * sizeof addresses[0]);
  }
  bool failed = false;
  for (uint32_t r = 0; r < options.ranks; ++r) {
    int status = 0;
    failed = wait(&status) < 0 || status != 0 || failed;
  }
  for (const Channel& channel : channels) {
    for (const int fd : {channel.up[0], channel.up[1], channel.down[0], channel.down[1]}) close(fd);
  }
  if (failed) std::exit(1);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  constexpr char kUsage[] =
      "usage: bench_all_reduce [--ranks N] [--rounds N] [--transport shm|tcp] [--tls DIR] "
      "BYTES...\n"
      "Times the sum of buffers of BYTES bytes each over N processes of this host; prints one "
      "JSON\n"
      "object a size. --tls: over TCP under TLS, with certificates of `lockstep certs DIR`. "
      "Example:\n"
      "  bench_all_reduce --ranks 2 --rounds 20 1048576 16777216\n";
  lockstep::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--help" || word == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--ranks")
      options.ranks = static_cast<uint32_t>(std::atoi(value)), ++i;
    else if (word == "--rounds")
      options.rounds = static_cast<uint32_t>(std::atoi(value)), ++i;
    else if (word == "--transport")
      options.tcp = std::string(value) == "tcp", ++i;
    else if (word == "--tls")
      options.tls = value, options.tcp = true, ++i;
    else
      options.sizes_bytes.push_back(std::strtoull(word.c_str(), nullptr, 10));
  }
  if (options.sizes_bytes.empty() || options.ranks == 0 || options.rounds == 0) {
    std::fputs(kUsage, stderr);
    return 64;
  }
  for (const uint64_t bytes : options.sizes_bytes) lockstep::run_size(options, bytes);
  return 0;
}
