// Each epoch reads every object once, in another order: what each policy finds in the cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "data/source/cache/chunk_file.h"
#include "data/source/cache/object_cache.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/source/fake_store.h"

namespace lockstep::source {
namespace {

constexpr uint64_t kObjects = 100;
constexpr uint64_t kBytes = 100;
constexpr int kEpochs = 4;

// Share of reads that were hits, after the first epoch.
double hit_rate(CachePolicy policy, uint64_t percent) {
  const TemporaryDirectory dir;
  FakeStore store;
  for (uint64_t i = 0; i < kObjects; ++i) store.objects[std::to_string(i)] = some_bytes(kBytes);
  CacheOptions options;
  options.policy = policy;
  options.keep_free_share = 0;
  options.limit_bytes = kObjects * percent / 100 * chunk_file_bytes(kBytes);
  const std::atomic<bool> stop{false};
  DiskCache disk(dir.path("c"), options);
  ObjectCache cache(store, disk, options, stop);
  std::vector<uint64_t> order(kObjects);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::mt19937_64 random(percent);
  SourceCounts first;
  for (int epoch = 0; epoch <= kEpochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    for (const uint64_t i : order) {
      uint8_t out[kBytes];
      EXPECT_TRUE(cache.read({std::to_string(i), kBytes, "v1"}, 0, kBytes, out).is_ok());
      EXPECT_LE(disk.bytes(), options.limit_bytes);
    }
    if (epoch == 0) first = cache.counts();
  }
  return static_cast<double>(cache.counts().hits - first.hits) / (kObjects * kEpochs);
}

TEST(HitRate, OfPinIsTheShareThatFitsAndNoOtherPolicyHasMore) {
  std::printf("capacity   pin   lru  fifo\n");
  for (const uint64_t percent : {10, 40, 80}) {
    const double pin = hit_rate(CachePolicy::kPin, percent);
    const double lru = hit_rate(CachePolicy::kLru, percent);
    const double fifo = hit_rate(CachePolicy::kFifo, percent);
    std::printf("%7d %% %5.3f %5.3f %5.3f\n", static_cast<int>(percent), pin, lru, fifo);
    EXPECT_DOUBLE_EQ(pin, static_cast<double>(percent) / 100);
    EXPECT_LT(lru, pin);
    EXPECT_LT(fifo, pin);
  }
}

}  // namespace
}  // namespace lockstep::source
