// Several ranks with an NcclContext each, over FakeNccl, CudaQueue on FakeCuda, and the loopback
// Collective.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/collectives/loopback/loopback.h"
#include "comm/collectives/nccl/cuda_queue.h"
#include "comm/collectives/nccl/nccl_context.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_nccl.h"

namespace lockstep::testing {

inline void run_ranks(size_t ranks, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back([&work, r] { work(r); });
  for (std::thread& thread : threads) thread.join();
}

// A gradient buffer whose result is memory that peers may map.
class PeerBuffer final : public GradientBuffer {
 public:
  PeerBuffer(const BufferLayout& layout, uint32_t regions)
      : plain_(make_plain_buffer(layout, regions)),
        result_(FakeNccl::get().allocate(layout.elements * sizeof(float))) {}
  ~PeerBuffer() override { FakeNccl::get().release(result_); }
  const BufferLayout& layout() const override { return plain_->layout(); }
  uint32_t regions() const override { return plain_->regions(); }
  float* partial(uint32_t region) override { return plain_->partial(region); }
  float* result() override { return static_cast<float*>(result_); }

 private:
  const std::unique_ptr<GradientBuffer> plain_;
  void* const result_;
};

struct NcclWorker {
  NcclWorker(MemberId id, const BufferLayout& layout, uint32_t regions, nccl::Numerics numerics,
             const nccl::NcclApi& api = FakeNccl::api(), nccl::WatchOptions watch = {})
      : NcclWorker(id, make_plain_buffer(layout, regions), numerics, api, false, std::move(watch)) {
  }
  NcclWorker(MemberId id, std::unique_ptr<GradientBuffer> memory, nccl::Numerics numerics,
             const nccl::NcclApi& api, bool may_map_result, nccl::WatchOptions watch = {},
             std::string pci = "", const std::string& sysfs = "/nowhere")
      : member(id),
        buffer(std::move(memory)),
        queue(nccl::CudaQueue::create({&gradients, &compute}).value()),
        context(api, clock, *queue, *buffer, numerics, may_map_result, {std::move(pci), sysfs},
                std::move(watch)) {}

  const MemberId member;
  SystemClock clock;
  const std::unique_ptr<GradientBuffer> buffer;
  CUstream_st gradients;
  CUstream_st compute;
  const std::unique_ptr<nccl::CudaQueue> queue;
  nccl::NcclContext context;
  int deadline_ms = 20'000;
  std::unique_ptr<Collective> control;
  std::unique_ptr<DeviceCollective> collective;
  std::atomic<bool> is_closed{false};  // the session sets it to end what would never end

  Status connect(Generation generation, const std::vector<MemberId>& members,
                 const std::vector<uint32_t>& node_of_rank, std::unique_ptr<Collective> host) {
    collective.reset();
    control = std::move(host);
    auto made = context.connect({generation, members, node_of_rank, control.get(), deadline_ms,
                                 [this] { return is_closed || FakeNccl::get().is_hopeless(); }});
    if (made.is_ok()) collective = std::move(*made);
    return made.status();
  }
};

using NcclWorkers = std::vector<std::unique_ptr<NcclWorker>>;

// Moves all of `workers` into a new generation, ranks in their order. Returns the outcomes by rank.
inline std::vector<Status> try_start(const std::vector<NcclWorker*>& workers, Generation generation,
                                     const std::vector<uint32_t>& node_of_rank) {
  std::vector<GradientBuffer*> buffers;
  std::vector<MemberId> members;
  for (NcclWorker* worker : workers) {
    buffers.push_back(worker->buffer.get());
    members.push_back(worker->member);
  }
  auto control = make_loopback(generation, buffers);
  std::vector<Status> found(workers.size());
  run_ranks(workers.size(), [&](uint32_t r) {
    found[r] = workers[r]->connect(generation, members, node_of_rank, std::move(control[r]));
  });
  return found;
}

inline void start(const std::vector<NcclWorker*>& workers, Generation generation,
                  const std::vector<uint32_t>& node_of_rank) {
  for (const Status& status : try_start(workers, generation, node_of_rank))
    ASSERT_TRUE(status.is_ok()) << status.message();
}

}  // namespace lockstep::testing
