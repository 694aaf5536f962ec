// How fast a survivor's training thread comes back from a collective that will never end: the data
// plane's part of a recovery.
//
//     bench_release [--rounds 200]
//
// Two ranks in this process, host backend, once over shared memory and once over TCP. Rank 0 is
// asleep in a barrier that rank 1 does not enter. Prints one JSON line per transport and way:
// "own": from the call of HostContext::close() on rank 0 to the return of its barrier; "peer": the
// same with the close on rank 1. Microseconds, median and maximum.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "comm/base/check.h"
#include "comm/base/clock.h"
#include "comm/collectives/host/host_collective.h"

namespace lockstep {
namespace {

constexpr int kConnectMs = 20'000;
constexpr std::chrono::milliseconds kUntilAsleep{5};  // rank 0 spins for a fraction of that
constexpr uint32_t kRanks = 2;

struct Pair {
  explicit Pair(bool tcp) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      auto made = HostContext::create({.token = "benchmark", .force_tcp = tcp});
      LOCKSTEP_CHECK(made.is_ok(), "a host context");
      contexts[r] = std::move(*made);
      peers.push_back({r + 1, contexts[r]->address()});
    }
  }

  void connect(Generation generation) {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < kRanks; ++r) {
      threads.emplace_back([&, r] {
        auto made = contexts[r]->connect(generation, r, r + 1, peers, kConnectMs);
        LOCKSTEP_CHECK(made.is_ok(), "a connection");
        collectives[r] = std::move(*made);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<HostContext> contexts[kRanks];
  std::vector<PeerAddress> peers;
  std::unique_ptr<Collective> collectives[kRanks];
};

double release_us(Pair& pair, Generation generation, uint32_t closing_rank) {
  const SystemClock clock;
  pair.connect(generation);
  std::atomic<int64_t> returned_ns{0};
  std::atomic<bool> entered{false};
  std::thread blocked([&] {
    entered = true;
    const Status status = pair.collectives[0]->barrier({generation, 0, Phase::kTrain, 0, 0});
    returned_ns = clock.monotonic_ns();
    LOCKSTEP_CHECK(status.code() == Code::kAborted, "nobody met it");
  });
  while (!entered) std::this_thread::yield();
  std::this_thread::sleep_for(kUntilAsleep);
  const int64_t closed_ns = clock.monotonic_ns();
  pair.contexts[closing_rank]->close(generation);
  blocked.join();
  for (auto& collective : pair.collectives) collective.reset();
  return static_cast<double>(returned_ns - closed_ns) / 1e3;
}

void run(bool tcp, uint32_t closing_rank, uint32_t rounds) {
  Pair pair(tcp);
  std::vector<double> us;
  for (Generation g = 1; g <= rounds; ++g) us.push_back(release_us(pair, g, closing_rank));
  std::sort(us.begin(), us.end());
  std::printf(
      "{\"transport\": \"%s\", \"closed_by\": \"%s\", \"rounds\": %u, \"median_us\": %.1f, "
      "\"max_us\": %.1f}\n",
      tcp ? "tcp" : "shm", closing_rank == 0 ? "own" : "peer", rounds, us[us.size() / 2],
      us.back());
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  uint32_t rounds = 200;
  if (argc == 3 && std::string(argv[1]) == "--rounds")
    rounds = static_cast<uint32_t>(std::atoi(argv[2]));
  if ((argc != 1 && argc != 3) || rounds == 0) {
    std::fprintf(stderr, "usage: bench_release [--rounds N]\n");
    return 64;
  }
  for (const bool tcp : {false, true})
    for (const uint32_t closing_rank : {0u, 1u}) lockstep::run(tcp, closing_rank, rounds);
  return 0;
}
