// Sums of whole buckets over NCCL, in worlds of 2 to 8 GPUs: a bucket of 64 MiB and one cut, and
// buckets of other sizes, twice. NCCL moves large buckets by other protocols than small ones, and a
// stage that has grown is other memory. Exact sums have the tree's bits. Fast sums may be in any
// order, so they are of whole numbers, which all orders sum alike.
//
// Every rank is a thread of this process with a GPU of its own. Values repeat with a prime period:
// one period is enough to add on the host.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/gpu/cuda_status.h"
#include "comm/base/prng.h"
#include "comm/collectives/loopback/loopback.h"
#include "comm/collectives/nccl/cuda_queue.h"
#include "comm/collectives/nccl/nccl_context.h"
#include "comm/collectives/sum_slice.h"
#include "tests/gpu/bucket_machine.h"

namespace lockstep::nccl {
namespace {

using cuda::cuda_status;
using testing::BucketMachine;

constexpr Generation kGeneration = 1;
constexpr uint64_t kPeriod = 65'521;
constexpr uint32_t kRegions = 4;  // of a rank with two slots
constexpr int kDeadlineMs = 60'000;
constexpr auto kHangs = std::chrono::minutes(2);

// Partials in memory of the GPU, and a result that peers may map where NCCL has such memory.
class Gpu final : public GradientBuffer {
 public:
  Gpu(const NcclApi& api, const BufferLayout& layout, bool for_peers)
      : api_(api), layout_(layout), for_peers_(for_peers) {
    const size_t bytes = layout.elements * sizeof(float);
    EXPECT_EQ(cudaMalloc(&partials_, kRegions * bytes), cudaSuccess);
    if (for_peers)
      EXPECT_EQ(api.allocate(&result_, bytes), ncclSuccess);
    else
      EXPECT_EQ(cudaMalloc(&result_, bytes), cudaSuccess);
    for (cudaStream_t* stream : {&gradients_, &compute_})
      EXPECT_EQ(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, 0), cudaSuccess);
  }
  ~Gpu() override {
    for (cudaStream_t stream : {gradients_, compute_})
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    if (for_peers_)
      EXPECT_EQ(api_.release(result_), ncclSuccess);
    else
      EXPECT_EQ(cudaFree(result_), cudaSuccess);
    EXPECT_EQ(cudaFree(partials_), cudaSuccess);
  }

  const BufferLayout& layout() const override { return layout_; }
  uint32_t regions() const override { return kRegions; }
  float* partial(uint32_t region) override {
    return static_cast<float*>(partials_) + region * layout_.elements;
  }
  float* result() override { return static_cast<float*>(result_); }
  EngineStreams streams() const { return {.gradients = gradients_, .compute = compute_}; }

 private:
  const NcclApi api_;
  const BufferLayout layout_;
  const bool for_peers_;
  void* partials_ = nullptr;
  void* result_ = nullptr;
  cudaStream_t gradients_ = nullptr;
  cudaStream_t compute_ = nullptr;
};

Status copy(void* to, const void* from, size_t bytes) {
  LOCKSTEP_RETURN_IF_ERROR(cuda_status(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy"));
  return cuda_status(cudaStreamSynchronize(cudaStreamLegacy), "end a copy");
}

// One period of the values of a rank's region.
std::vector<float> period_of(uint32_t rank, uint32_t region, Numerics numerics) {
  std::vector<float> values(kPeriod);
  for (uint64_t i = 0; i < kPeriod; ++i) {
    const auto whole = static_cast<float>(stream_value(8 * rank + region + 1, i) % 2001) - 1000.0f;
    values[i] = numerics == Numerics::kExact ? whole * 1e-3f : whole;
  }
  return values;
}

// Element i of a step is element i + step of the endless repetition.
std::vector<float> repeated(const std::vector<float>& period, Step step, uint64_t elements) {
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < elements; ++i) values[i] = period[(i + step) % kPeriod];
  return values;
}

struct World {
  uint32_t ranks;
  Numerics numerics;
  uint32_t of_node;  // ranks of a node
};

class NcclBuckets : public ::testing::TestWithParam<World> {
 protected:
  struct Rank {
    SystemClock clock;
    std::unique_ptr<Gpu> gpu;
    std::unique_ptr<CudaQueue> queue;
    std::unique_ptr<NcclContext> context;
    std::unique_ptr<Collective> host;
    std::unique_ptr<DeviceCollective> collective;
  };

  void SetUp() override {
    auto machine = testing::open_machine();
    if (!machine.is_ok()) GTEST_SKIP() << machine.status().message();
    machine_ = std::move(machine).value();
    if (world().ranks > machine_.gpus)
      GTEST_SKIP() << "not applicable: "
                   << (machine_.gpus == 1 ? "one GPU" : std::to_string(machine_.gpus) + " GPUs");
    const uint64_t bucket = machine_.bucket_bytes / sizeof(float);
    layout_.gradients = 2 * bucket + 4 * kCutElements;
    layout_.statistics = layout_.gradients;
    layout_.elements = layout_.gradients + kCutElements;
    steps_ = {{0, bucket + kCutElements, bucket + bucket / 4, layout_.gradients},
              {0, 3 * kCutElements, bucket / 2, layout_.gradients}};
    // One slot more than ranks, so that the last rank has two.
    const uint32_t slots = world().ranks + 1;
    std::vector<SlotRun> runs;
    for (uint32_t r = 0; r < world().ranks; ++r)
      runs.push_back({r, r + 1 == world().ranks ? slots : r + 1});
    merge_ = make_step_merge(runs, slots, std::vector<bool>(slots, true));
  }

  static const World& world() { return GetParam(); }

  // Runs `work` on a thread for each rank, on its GPU.
  template <typename Work>
  void each(const Work& work) {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < world().ranks; ++r)
      threads.emplace_back([&, r] {
        ASSERT_EQ(cudaSetDevice(static_cast<int>(r)), cudaSuccess);
        work(r);
      });
    for (std::thread& thread : threads) thread.join();
  }

  void connect() {
    ranks_.resize(world().ranks);
    each([&](uint32_t r) {
      ranks_[r] = std::make_unique<Rank>();
      Rank* const made = ranks_[r].get();
      const bool for_peers = world().numerics == Numerics::kFast;
      made->gpu = std::make_unique<Gpu>(machine_.api, layout_, for_peers);
      made->queue = CudaQueue::create(made->gpu->streams()).value();
      made->context =
          std::make_unique<NcclContext>(machine_.api, made->clock, *made->queue, *made->gpu,
                                        world().numerics, for_peers, AdapterLinks("", "/sys"));
    });
    std::vector<GradientBuffer*> buffers;
    std::vector<MemberId> members;
    std::vector<uint32_t> nodes;
    for (uint32_t r = 0; r < world().ranks; ++r) {
      buffers.push_back(ranks_[r]->gpu.get());
      members.push_back(100 + r);
      nodes.push_back(r / world().of_node);
    }
    auto hosts = make_loopback(kGeneration, buffers);
    const auto end = std::chrono::steady_clock::now() + kHangs;
    each([&](uint32_t r) {
      ranks_[r]->host = std::move(hosts[r]);
      auto made = ranks_[r]->context->connect(
          {kGeneration, members, nodes, ranks_[r]->host.get(), kDeadlineMs, [this, end] {
             return machine_.is_hopeless() || std::chrono::steady_clock::now() > end;
           }});
      ASSERT_TRUE(made.is_ok()) << made.status().message();
      ranks_[r]->collective = std::move(made).value();
    });
  }

  std::vector<float> expected_period() const {
    std::vector<std::vector<float>> values(world().ranks * kRegions);
    for (uint32_t r = 0; r < world().ranks; ++r)
      for (uint32_t region = 0; region < kRegions; ++region)
        values[r * kRegions + region] = period_of(r, region, world().numerics);
    std::vector<float> sum(kPeriod);
    const auto leaf = [&](const Leaf& at) { return values[at.rank * kRegions + at.region].data(); };
    sum_slice(merge_, kPeriod, {0, kPeriod}, leaf, sum.data());
    return sum;
  }

  Status sum(uint32_t r, Step step, std::vector<float>* found) {
    Rank& rank = *ranks_[r];
    const std::vector<uint64_t>& bounds = steps_[step % steps_.size()];
    Tag tag{.generation = kGeneration, .step = step};
    LOCKSTEP_RETURN_IF_ERROR(rank.collective->begin_step(tag, merge_));
    for (const FinalPartial& partial : merge_.ranks[r].partials) {
      const auto values =
          repeated(period_of(r, partial.region, world().numerics), step, layout_.gradients);
      LOCKSTEP_RETURN_IF_ERROR(
          copy(rank.gpu->partial(partial.region), values.data(), values.size() * sizeof(float)));
    }
    for (; tag.bucket + 1 < bounds.size(); ++tag.bucket)
      LOCKSTEP_RETURN_IF_ERROR(
          rank.collective->all_reduce(tag, {bounds[tag.bucket], bounds[tag.bucket + 1]}));
    LOCKSTEP_RETURN_IF_ERROR(rank.collective->wait_for_sums().status());
    found->resize(layout_.gradients);
    return copy(found->data(), rank.collective->reduced(), found->size() * sizeof(float));
  }

  BucketMachine machine_;
  BufferLayout layout_;
  std::vector<std::vector<uint64_t>> steps_;  // bounds of the buckets
  StepMerge merge_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_P(NcclBuckets, HaveTheBitsOfTheHost) {
  connect();
  if (HasFailure()) return;
  const std::vector<float> period = expected_period();
  for (Step step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    const std::vector<float> expected = repeated(period, step, layout_.gradients);
    each([&](uint32_t r) {
      std::vector<float> found;
      const Status status = sum(r, step, &found);
      ASSERT_TRUE(status.is_ok()) << "rank " << r << ": " << status.message();
      if (std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0) return;
      const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin());
      ADD_FAILURE() << "rank " << r << ": element " << a - found.begin() << " is " << *a
                    << ", not the host's " << *b;
    });
  }
  each([&](uint32_t r) {
    ranks_[r]->collective.reset();
    ranks_[r]->context.reset();
    ranks_[r]->queue.reset();
    ranks_[r]->gpu.reset();
  });
  EXPECT_THAT(machine_.misuses(), ::testing::IsEmpty());
}

std::vector<World> worlds() {
  std::vector<World> all;
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    all.push_back({ranks, Numerics::kExact, ranks});
    if (ranks > 2) all.push_back({ranks, Numerics::kExact, 2});
    all.push_back({ranks, Numerics::kFast, ranks});
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<World>& info) {
  const World& world = info.param;
  return std::string(world.numerics == Numerics::kExact ? "exact" : "fast") + "_of_" +
         std::to_string(world.ranks) + (world.of_node < world.ranks ? "_in_levels" : "");
}

INSTANTIATE_TEST_SUITE_P(Worlds, NcclBuckets, ::testing::ValuesIn(worlds()), name_of);

}  // namespace
}  // namespace lockstep::nccl
