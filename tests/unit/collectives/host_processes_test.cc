// Real processes over real shared memory and sockets: the same bits, and what kill -9 does.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/collectives/world.h"

namespace lockstep {
namespace {

constexpr uint32_t kRanks = 4;
constexpr BufferLayout kLayout = {48'000, 48'000, 48'016};

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  int ends[2] = {-1, -1};
};

// Fixed-size text over a pipe.
void tell(int fd, const std::string& text) {
  char message[256] = {};
  std::strncpy(message, text.c_str(), sizeof message - 1);
  ASSERT_EQ(write(fd, message, sizeof message), ssize_t{sizeof message});
}

std::string hear(int fd) {
  char message[256] = {};
  size_t got = 0;
  while (got < sizeof message) {
    const ssize_t n = read(fd, message + got, sizeof message - got);
    if (n <= 0) return "";
    got += static_cast<size_t>(n);
  }
  return message;
}

// Each child makes its own context, tells its address, hears all, connects and works.
class Processes {
 public:
  // Does the rank's part and returns what to tell the parent; `report` tells it something earlier.
  using Report = std::function<void(const std::string&)>;
  using Work =
      std::function<std::string(uint32_t rank, Collective&, GradientBuffer&, const Report&)>;

  Processes(bool mixed, const Work& work) : up_(kRanks), down_(kRanks) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      const pid_t child = fork();
      if (child == 0) {
        close(up_[r].ends[0]);
        tell(up_[r].ends[1], run(r, mixed && r % 2 == 1, work));
        _exit(0);
      }
      pids.push_back(child);
      close(up_[r].ends[1]);
    }
    std::vector<std::string> addresses;
    for (uint32_t r = 0; r < 3 * kRanks; ++r) addresses.push_back(hear(up_[r / 3].ends[0]));
    for (uint32_t r = 0; r < kRanks; ++r) {
      for (const std::string& address : addresses) tell(down_[r].ends[1], address);
    }
  }

  ~Processes() {
    for (const pid_t pid : pids) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  std::string hear_from(uint32_t rank) { return hear(up_[rank].ends[0]); }

  std::vector<pid_t> pids;

 private:
  std::string run(uint32_t rank, bool tcp, const Work& work) {
    auto context = HostContext::create({.token = "secret", .force_tcp = tcp});
    if (!context.is_ok()) return context.status().message();
    auto buffer = (*context)->make_buffer(kLayout, 3);
    const HostAddress mine = (*context)->address();
    for (const std::string& part : {mine.host_id, mine.unix_name, mine.tcp}) {
      tell(up_[rank].ends[1], part);
    }
    std::vector<PeerAddress> peers;
    for (uint32_t r = 0; r < kRanks; ++r) {
      PeerAddress peer;
      peer.member = r + 1;
      peer.address.host_id = hear(down_[rank].ends[0]);
      peer.address.unix_name = hear(down_[rank].ends[0]);
      peer.address.tcp = hear(down_[rank].ends[0]);
      peers.push_back(peer);
    }
    auto collective = (*context)->connect(1, rank, rank + 1, peers, testing::kConnectMs);
    if (!collective.is_ok()) return collective.status().message();
    return work(rank, **collective, **buffer,
                [&](const std::string& text) { tell(up_[rank].ends[1], text); });
  }

  std::vector<Pipe> up_;
  std::vector<Pipe> down_;
};

StepMerge merge_of_six_slots() {
  const std::vector<SlotRun> runs = {{0, 1}, {1, 4}, {4, 5}, {5, 6}};
  return make_step_merge(runs, 6, std::vector<bool>(6, true));
}

std::string hash_of_ten_steps(uint32_t rank, Collective& collective, GradientBuffer& buffer,
                              const Processes::Report&) {
  const StepMerge merge = merge_of_six_slots();
  uint64_t hash = 0;
  for (Step step = 0; step < 10; ++step) {
    const Tag tag = {1, step, Phase::kTrain, 0, 0};
    if (!collective.begin_step(tag, merge).is_ok()) return "begin_step failed";
    testing::fill_partials(merge.ranks[rank], step, &buffer);
    const Status status = collective.all_reduce(tag, {0, kLayout.elements});
    if (!status.is_ok()) return status.message();
    for (uint64_t i = 0; i < kLayout.elements; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, collective.reduced() + i, sizeof bits);
      hash = mix64(hash ^ bits);
    }
  }
  return "hash " + std::to_string(hash);
}

TEST(HostProcesses, SharedMemoryMixedAndLoopbackGiveTheSameBits) {
  testing::World world(testing::Transport::kLoopback, kRanks, kLayout, 3);
  world.start(1);
  std::vector<std::string> expected(kRanks);
  testing::run_ranks(kRanks, [&](uint32_t r) {
    expected[r] = hash_of_ten_steps(r, *world.collectives[r], *world.buffers[r], {});
  });
  for (const bool mixed : {false, true}) {
    Processes processes(mixed, hash_of_ten_steps);
    for (uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(processes.hear_from(r), expected[0]);
  }
}

// Rank 2 stops taking part; the others block in a barrier until its process is killed.
std::string wait_for_rank_2(uint32_t rank, Collective& collective, GradientBuffer&,
                            const Processes::Report& report) {
  const Tag tag = {1, 0, Phase::kTrain, 0, 0};
  if (!collective.barrier(tag).is_ok()) return "the first barrier failed";
  report("ready");
  if (rank == 2) {
    for (;;) pause();
  }
  const Status status = collective.barrier({1, 1, Phase::kTrain, 0, 0});
  return std::string(code_name(status.code())) + " " + std::to_string(collective.broken_rank());
}

TEST(HostProcesses, KillingAPeerEndsEveryWaitAndNamesTheRank) {
  for (const bool mixed : {false, true}) {
    Processes processes(mixed, wait_for_rank_2);
    for (uint32_t r = 0; r < kRanks; ++r) ASSERT_EQ(processes.hear_from(r), "ready");
    kill(processes.pids[2], SIGKILL);
    int named = 0;
    for (const uint32_t r : {0U, 1U, 3U}) {
      const std::string end = processes.hear_from(r);
      // A rank that first hears from a rank that gave up names no rank, or over TCP that rank.
      EXPECT_TRUE(end.starts_with("aborted ")) << end;
      named += end == "aborted 2" ? 1 : 0;
    }
    EXPECT_GE(named, 1);
  }
}

}  // namespace
}  // namespace lockstep
