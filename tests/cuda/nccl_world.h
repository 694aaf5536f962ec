// Several ranks with an NcclContext each, over FakeNccl, PlainQueue and the loopback Collective.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "comm/collectives/loopback/loopback.h"
#include "comm/collectives/nccl/nccl_context.h"
#include "tests/cuda/fake_nccl.h"
#include "tests/cuda/plain_queue.h"

namespace lockstep::testing {

inline void run_ranks(size_t ranks, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
  for (std::thread& thread : threads) thread.join();
}

struct NcclWorker {
  NcclWorker(MemberId id, const BufferLayout& layout, uint32_t regions, nccl::Numerics numerics)
      : member(id),
        buffer(make_plain_buffer(layout, regions)),
        context(FakeNccl::api(), clock, queue, *buffer, numerics) {}

  const MemberId member;
  SystemClock clock;
  PlainQueue queue;
  std::unique_ptr<GradientBuffer> buffer;
  nccl::NcclContext context;
  std::unique_ptr<Collective> control;
  std::unique_ptr<DeviceCollective> collective;
  std::atomic<bool> is_closed{false};  // closed by the session
};

using NcclWorkers = std::vector<std::unique_ptr<NcclWorker>>;

// Moves all of `workers` into a new generation, ranks in their order.
inline void start(const std::vector<NcclWorker*>& workers, Generation generation,
                  const std::vector<uint32_t>& node_of_rank) {
  std::vector<GradientBuffer*> buffers;
  std::vector<MemberId> members;
  for (NcclWorker* worker : workers) {
    buffers.push_back(worker->buffer.get());
    members.push_back(worker->member);
  }
  auto control = make_loopback(generation, buffers);
  run_ranks(workers.size(), [&](uint32_t r) {
    auto connected =
        workers[r]->context.connect({generation, members, node_of_rank, control[r].get(), 20'000,
                                     [worker = workers[r]] { return worker->is_closed.load(); }});
    ASSERT_TRUE(connected.is_ok()) << connected.status().message();
    workers[r]->collective = std::move(*connected);
    workers[r]->control = std::move(control[r]);
  });
}

}  // namespace lockstep::testing
