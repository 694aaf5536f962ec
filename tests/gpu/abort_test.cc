// Aborts a collective on the GPU with a bucket half summed, in every bucket in turn. The closed
// gate leaves parameters, moments, statistics and loss scale bitwise as they were; with an open
// gate they change. At world size 1 NCCL launches nothing, so a stand-in of two ranks implements
// Collective (stuck_sum.h).
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "comm/base/prng.h"
#include "comm/collectives/forwarding.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/gpu/cuda_buffer.h"
#include "tests/gpu/device_array.h"
#include "tests/gpu/stuck_sum.h"
#include "tests/support/same_bits.h"
#include "worker/cuda/kernels/apply_launch.h"

namespace lockstep::cuda {
namespace {

using testing::DeviceArray;

// Bucket b holds norm block b. The last bucket holds the statistics and the control section.
constexpr uint32_t kBuckets = 4;
constexpr uint64_t kGradients = (kBuckets - 1) * kNormBlock;
constexpr uint64_t kStatistics = 16;
constexpr BufferLayout kLayout{kGradients, kGradients + kStatistics, kGradients + kStatistics + 16};
constexpr Generation kGeneration = 1;

ElementRange range_of(uint32_t bucket) {
  const bool is_last = bucket + 1 == kBuckets;
  return {bucket * kNormBlock, is_last ? kLayout.elements : (bucket + 1) * kNormBlock};
}

std::vector<float> noise(uint64_t key, uint64_t elements) {
  std::vector<float> values;
  for (uint64_t i = 0; i < elements; ++i)
    values.push_back(static_cast<float>(stream_value(key, i) % 2001) / 1000 - 1);
  return values;
}

// This rank's partial is region 0 of the buffer, the peer's is region 1.
class StuckCollective final : public Forwarding<Collective> {
 public:
  StuckCollective(GradientBuffer& buffer, cudaStream_t stream)
      : Forwarding(std::move(make_loopback(kGeneration, {&buffer}).front())),
        buffer_(buffer),
        stream_(stream) {}
  ~StuckCollective() override {
    abort();
    (void)cudaStreamSynchronize(stream_);
  }

  Status all_reduce(const Tag& tag, const ElementRange& range) override {
    return testing::launch_stuck_sum(
        {buffer_.partial(0) + range.begin, buffer_.partial(1) + range.begin,
         buffer_.result() + range.begin, range.size(), tag.bucket < peer_has_died_in_,
         aborted_.get()},
        stream_);
  }
  const float* reduced() const override { return buffer_.result(); }
  void abort() noexcept override {
    std::atomic_ref<uint32_t>(*aborted_.get()).store(1);
    Forwarding::abort();
  }

  void lose_peer(uint32_t bucket) { peer_has_died_in_ = bucket; }

 private:
  GradientBuffer& buffer_;
  const cudaStream_t stream_;
  uint32_t peer_has_died_in_ = kBuckets;
  const testing::PinnedValue<uint32_t> aborted_;
};

// The factors that an update needs besides its rule's type.
template <typename Rule>
typename Rule::Factors factors_of();
template <>
AdamFactors factors_of<Adam>() {
  AdamFactors factors{.beta2 = 0.99f, .one_minus_beta2 = 0.01f, .step_size = 0.1f, .eps = 1e-6f};
  factors.one_minus_beta1 = 0.1f;
  return factors;
}
template <>
SgdFactors factors_of<SgdMomentum>() {
  return {.lr = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f};
}

// A worker's device memory, and its step as one stream.
template <typename Rule>
class Worker {
 public:
  explicit Worker(bool scales_loss) : scales_loss_(scales_loss) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    int lowest = 0, highest = 0;
    EXPECT_EQ(cudaDeviceGetStreamPriorityRange(&lowest, &highest), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithPriority(&closing_, cudaStreamNonBlocking, highest), cudaSuccess);
    auto buffer = testing::make_cuda_buffer(kLayout, 2);
    EXPECT_TRUE(buffer.is_ok()) << buffer.status().message();
    buffer_ = std::move(buffer).value();
    begin_generation(0);
    (void)close();  // its code is loaded before anything spins
    begin_generation(0);
  }
  ~Worker() {
    collective_.reset();
    (void)cudaStreamDestroy(closing_);
    (void)cudaStreamDestroy(stream_);
  }

  // The gate lets step `applied` through next.
  void begin_generation(uint64_t applied) {
    collective_ = std::make_unique<StuckCollective>(*buffer_, stream_);
    ApplyState state = state_.read()[0];
    state.gate = applied;
    state_.write({state});
  }

  StuckCollective& collective() { return *collective_; }

  // Does not wait.
  Status enqueue(uint64_t step) {
    for (uint32_t region : {0u, 1u}) fill(region, step);
    Tag tag{.generation = kGeneration, .step = step};
    const SlotRun runs[] = {{0, 1}};
    LOCKSTEP_RETURN_IF_ERROR(collective_->begin_step(tag, make_step_merge(runs, 1, {true})));
    for (tag.bucket = 0; tag.bucket < kBuckets; ++tag.bucket) {
      LOCKSTEP_RETURN_IF_ERROR(collective_->all_reduce(tag, range_of(tag.bucket)));
      LOCKSTEP_RETURN_IF_ERROR(
          launch_block_totals({sums(), blocks_.get(), totals_.get(), tag.bucket, 1}, stream_));
    }
    StepRule rule{.step = step, .clip_norm = 1, .loss_scale = {}};
    rule.loss_scale.is_on = scales_loss_;
    rule.loss_scale.growth_every = 2;
    LOCKSTEP_RETURN_IF_ERROR(launch_decide(state_.get(), rule, totals_.get(), kBuckets,
                                           sums() + kLayout.statistics, stream_));
    const StepVerdict* verdict = &state_.get()->verdict;
    GroupFactors<Rule> factors;
    factors.of[0] = factors_of<Rule>();
    UpdateBuffers buffers{params_.get(), {first_.get(), second_.get()}, sums()};
    LOCKSTEP_RETURN_IF_ERROR(launch_update(verdict, chunks_.get(), chunk_count_, buffers, factors,
                                           /*keeps_zeros=*/false, stream_));
    return launch_statistics(verdict, sums() + kGradients, kStatistics, 2, statistics_.get(),
                             stream_);
  }

  bool is_stuck() {
    const bool is_busy = cudaStreamQuery(stream_) == cudaErrorNotReady;
    (void)cudaGetLastError();  // which the query has set
    return is_busy;
  }
  void wait() { ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

  // Closes the gate. Returns the answer to prepare.
  uint64_t close() {
    EXPECT_TRUE(launch_close(state_.get(), answer_.get(), closing_).is_ok());
    EXPECT_EQ(cudaStreamSynchronize(closing_), cudaSuccess);
    return *answer_.get();
  }

  // All memory that a step may change, except the gate.
  std::vector<float> memory() const {
    std::vector<float> all;
    for (const DeviceArray<float>* each : {&params_, &first_, &second_, &statistics_}) {
      const std::vector<float> values = each->read();
      all.insert(all.end(), values.begin(), values.end());
    }
    const LossScaleState scale = state_.read()[0].loss_scale;
    for (const float value : {scale.scale, static_cast<float>(scale.good_steps),
                              static_cast<float>(scale.skipped_steps)})
      all.push_back(value);
    return all;
  }

 private:
  float* sums() { return buffer_->result(); }

  void fill(uint32_t region, uint64_t step) {
    const std::vector<float> values = noise(10 + 2 * step + region, kLayout.elements);
    testing::copy_bytes(buffer_->partial(region), values.data(), values.size() * sizeof(float));
  }

  static std::vector<TotalsBlock> blocks() {
    const NormRange gradients[] = {{0, kGradients}};
    return make_totals_blocks(gradients, {kGradients, kStatistics});
  }
  static std::vector<UpdateChunk> chunks() {
    const OptimizerSegment segments[] = {{.start = 0, .length = kGradients, .group = 0}};
    return make_update_chunks(segments);
  }
  static ApplyState first_state() {
    ApplyState state;
    state.loss_scale.scale = 8;
    return state;
  }

  const bool scales_loss_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t closing_ = nullptr;
  const testing::PinnedValue<uint64_t> answer_;
  std::unique_ptr<GradientBuffer> buffer_;
  std::unique_ptr<StuckCollective> collective_;
  DeviceArray<float> params_{noise(1, kGradients)};
  DeviceArray<float> first_{noise(2, kGradients)};
  DeviceArray<float> second_{std::vector<float>(kGradients, 0.5f)};
  DeviceArray<float> statistics_{noise(3, kStatistics)};
  DeviceArray<TotalsBlock> blocks_{blocks()};
  DeviceArray<BlockTotals> totals_{std::vector<BlockTotals>(kBuckets)};
  const uint32_t chunk_count_ = static_cast<uint32_t>(chunks().size());
  DeviceArray<UpdateChunk> chunks_{chunks()};
  DeviceArray<ApplyState> state_{{first_state()}};
};

class AbortOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "this machine has no GPU: NOT TESTED here";
  }

  // Step 0 is done, step 1 is stuck in `bucket`.
  template <typename Rule>
  static std::vector<float> memory_before_loss(Worker<Rule>& worker, uint32_t bucket) {
    EXPECT_TRUE(worker.enqueue(0).is_ok());
    worker.wait();
    std::vector<float> before = worker.memory();
    worker.collective().lose_peer(bucket);
    EXPECT_TRUE(worker.enqueue(1).is_ok());
    return before;
  }

  template <typename Rule>
  static void expect_untouched(bool scales_loss) {
    Worker<Rule> undisturbed(scales_loss);
    for (uint64_t step : {0, 1}) {
      const Status status = undisturbed.enqueue(step);
      ASSERT_TRUE(status.is_ok()) << status.message();
      undisturbed.wait();
    }
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      SCOPED_TRACE(bucket);
      Worker<Rule> worker(scales_loss);
      const std::vector<float> before = memory_before_loss(worker, bucket);
      EXPECT_EQ(worker.close(), 1u);  // open until then, one step through
      EXPECT_TRUE(worker.is_stuck());
      worker.collective().abort();
      worker.wait();
      EXPECT_TRUE(same_bits(worker.memory(), before));

      worker.begin_generation(1);
      ASSERT_TRUE(worker.enqueue(1).is_ok());
      worker.wait();
      EXPECT_TRUE(same_bits(worker.memory(), undisturbed.memory()));
    }
  }
};

TEST_F(AbortOnGpu, InAnyBucketBehindAClosedGateChangesNoBit) {
  for (const bool scales_loss : {false, true}) {
    SCOPED_TRACE(scales_loss);
    expect_untouched<Adam>(scales_loss);
    expect_untouched<SgdMomentum>(scales_loss);
  }
}

// Without this the test above could not fail.
TEST_F(AbortOnGpu, InAnyBucketBehindAnOpenGateAppliesGarbage) {
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    Worker<Adam> worker(true);
    const std::vector<float> before = memory_before_loss(worker, bucket);
    worker.collective().abort();
    worker.wait();
    EXPECT_FALSE(same_bits(worker.memory(), before)) << bucket;
  }
}

}  // namespace
}  // namespace lockstep::cuda
