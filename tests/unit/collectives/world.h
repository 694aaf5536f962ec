// Several ranks of one generation in this process, on any backend, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/base/prng.h"
#include "comm/collectives/collective.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/unit/rpc/tls_support.h"

namespace lockstep::testing {

enum class Transport { kLoopback, kSharedMemory, kTcp, kTls, kMixed };

inline const char* name_of(Transport transport) {
  static constexpr const char* kNames[] = {"loopback", "shm", "tcp", "tls", "mixed"};
  return kNames[static_cast<int>(transport)];
}

inline constexpr int kConnectMs = 20'000;

// Runs work(rank) on a thread per rank and waits for all.
inline void run_ranks(uint32_t ranks, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
  for (std::thread& thread : threads) thread.join();
}

// Certificates of an authority that ends with this process.
inline std::shared_ptr<rpc::TlsIdentity> certified() {
  static const auto logger = null_logger();
  static const std::shared_ptr<rpc::TlsIdentity> shared = [] {
    const std::string directory = rpc::empty_directory("data");
    rpc::issue(directory);
    auto made = rpc::identity(directory, *logger);
    std::filesystem::remove_all(directory);
    return made;
  }();
  return shared;
}

class World {
 public:
  World(Transport transport, uint32_t ranks, const BufferLayout& layout, uint32_t regions)
      : transport_(transport), ranks_(ranks) {
    for (uint32_t r = 0; r < ranks; ++r) {
      if (transport == Transport::kLoopback) {
        buffers.push_back(make_plain_buffer(layout, regions));
        continue;
      }
      // Mixed: odd ranks speak TCP only, so pairs of even ranks share memory and others do not.
      const bool tcp = transport == Transport::kTcp || transport == Transport::kTls ||
                       (transport == Transport::kMixed && r % 2 == 1);
      const auto tls = transport == Transport::kTls ? certified() : nullptr;
      auto context = HostContext::create({.token = "secret", .tls = tls, .force_tcp = tcp});
      EXPECT_TRUE(context.is_ok()) << context.status().message();
      contexts.push_back(std::move(*context));
      auto buffer = contexts.back()->make_buffer(layout, regions);
      EXPECT_TRUE(buffer.is_ok()) << buffer.status().message();
      buffers.push_back(std::move(*buffer));
    }
  }

  ~World() { collectives.clear(); }

  std::vector<PeerAddress> peers() const {
    std::vector<PeerAddress> result;
    for (uint32_t r = 0; r < ranks_; ++r) result.push_back({100 + r, contexts[r]->address()});
    return result;
  }

  void start(Generation generation) {
    collectives.clear();
    if (transport_ == Transport::kLoopback) {
      std::vector<GradientBuffer*> raw;
      for (const auto& buffer : buffers) raw.push_back(buffer.get());
      collectives = make_loopback(generation, raw);
      return;
    }
    collectives.resize(ranks_);
    run_ranks(ranks_, [&](uint32_t r) {
      auto connected = contexts[r]->connect(generation, r, 100 + r, peers(), kConnectMs);
      ASSERT_TRUE(connected.is_ok()) << connected.status().message();
      collectives[r] = std::move(*connected);
    });
  }

  // Runs work(rank) on a thread per rank. A rank that fails ends it for the other ranks too, which
  // would wait.
  void run(const std::function<void(uint32_t)>& work) {
    run_ranks(ranks_, [&](uint32_t r) {
      work(r);
      if (::testing::Test::HasFailure()) collectives[r]->abort();
    });
  }

  std::vector<std::unique_ptr<HostContext>> contexts;
  std::vector<std::unique_ptr<GradientBuffer>> buffers;
  std::vector<std::unique_ptr<Collective>> collectives;

 private:
  const Transport transport_;
  const uint32_t ranks_;
};

// Slot runs that cut [0, slots) into `ranks` non-empty pieces, chosen by `seed`.
inline std::vector<SlotRun> random_runs(uint32_t ranks, uint32_t slots, uint64_t seed) {
  Prng prng(seed);
  std::vector<SlotRun> runs;
  uint32_t begin = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t spare = slots - begin - (ranks - r);
    const uint32_t length =
        r + 1 == ranks ? slots - begin : 1 + static_cast<uint32_t>(prng.below(spare + 1));
    runs.push_back({begin, begin + length});
    begin += length;
  }
  return runs;
}

// Values whose sums round, so that the order of additions shows in the bits.
inline float value_of(uint64_t key, uint64_t element) {
  const uint64_t bits = mix64(key + element);
  const float mantissa = static_cast<float>(bits >> 40) / (1 << 24) - 0.5F;
  return mantissa * static_cast<float>(1 << (bits % 16));
}

inline float slot_value(uint64_t seed, uint32_t slot, uint64_t element) {
  return value_of(stream_key({seed, slot}), element);
}

// Does what a rank's engine does: puts every slot's gradient into its region, merged as the
// schedule says. Elements from layout.statistics on are control: each slot adds its value, empty
// slots none.
inline void fill_partials(const MergeSchedule& schedule, uint64_t seed, GradientBuffer* buffer) {
  const uint64_t n = buffer->layout().elements;
  for (const SlotWork& work : schedule.work) {
    const uint64_t key = stream_key({seed, work.slot});
    float* data = buffer->partial(work.region);
    for (uint64_t i = 0; i < n && !work.empty; ++i) data[i] = value_of(key, i);
    for (const RegionMerge& merge : work.merges) {
      add_into(buffer->partial(merge.dst), buffer->partial(merge.src), n);
    }
  }
  for (const FinalPartial& partial : schedule.partials) {
    if (!partial.empty) continue;
    float* data = buffer->partial(partial.region);
    // The gradients of an empty partial are never looked at; its control section is.
    for (uint64_t i = 0; i < n; ++i) data[i] = i < buffer->layout().statistics ? 1e30F : 0.0F;
  }
}

inline constexpr uint64_t kControlElements = 16;

inline BufferLayout layout_of(uint64_t gradients, uint64_t statistics) {
  return {gradients, gradients + statistics, gradients + statistics + kControlElements};
}

inline Tag tag_of(Generation generation, Step step, uint32_t bucket = 0, uint64_t bytes = 0) {
  return {generation, step, Phase::kTrain, bucket, bytes};
}

// The sum that every backend must give: one rank, naive tree order, through loopback.
inline std::vector<float> expected_sum(uint32_t slots, const std::vector<bool>& non_empty,
                                       uint64_t seed, const BufferLayout& layout) {
  const std::vector<SlotRun> runs = {{0, slots}};
  const StepMerge merge = make_step_merge(runs, slots, non_empty);
  World world(Transport::kLoopback, 1, layout, merge.ranks[0].regions);
  world.start(1);
  fill_partials(merge.ranks[0], seed, world.buffers[0].get());
  EXPECT_TRUE(world.collectives[0]->begin_step(tag_of(1, 0), merge).is_ok());
  EXPECT_TRUE(world.collectives[0]->all_reduce(tag_of(1, 0), {0, layout.elements}).is_ok());
  const float* sum = world.collectives[0]->reduced();
  return {sum, sum + layout.elements};
}

}  // namespace lockstep::testing
