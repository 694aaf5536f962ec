#include "data/prefetch/far_prefetcher.h"

#include <gtest/gtest.h>

#include <fstream>

#include "data/dataset/dataset.h"
#include "data/dataset/sample_shape.h"
#include "data/image/image_decoder.h"
#include "data/prefetch/make_prefetcher.h"
#include "data/source/far_files/remote_files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kSampleBytes = 1 << 20;

// Samples of a megabyte on a mount, of which at most eight may be announced ahead.
class FarImages final : public EncodedImages {
 public:
  const WantedImage& wanted() const override { return wanted_; }
  uint64_t announce(uint64_t i) const override {
    announced.push_back(i);
    return kSampleBytes;
  }
  uint32_t label(uint64_t) const override { return 0; }
  Status read_encoded(uint64_t, std::vector<uint8_t>&) const override { return Status::ok(); }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

  mutable std::vector<uint64_t> announced;

 private:
  const WantedImage wanted_{};
};

std::shared_ptr<const source::RemoteFiles> some_mount(const TemporaryDirectory& dir) {
  std::filesystem::create_directory(dir.path("mount"));
  std::ofstream(dir.path("mount/a.tar")) << "a";
  source::CacheOptions options;
  options.covers_paths = true;
  options.memory_bytes = 16 * kSampleBytes;
  const auto files = source::RemoteFiles::open(dir.path("mount"), dir.path("cache"), options, {});
  EXPECT_TRUE(files.is_ok()) << files.status().message();
  return *files;
}

TEST(FarPrefetcher, AnnouncesWhatTheLoaderWillReadInItsOrderAndNoMoreThanMemoryHolds) {
  const TemporaryDirectory dir;
  const auto images = std::make_shared<const FarImages>();
  const Dataset dataset({.samples = 50,
                         .shape = {1, 2, 2},
                         .classes = 2,
                         .format = "far",
                         .fingerprint = "far",
                         .far = {some_mount(dir)}},
                        images);
  BatchSequenceOptions options;
  options.shape = {.samples = 50, .global_batch = 12, .slots = 4};
  options.order = {3, dataset.fingerprint(), 50};
  options.first_step = 2;
  options.end_step = 9;  // into the second epoch: five steps an epoch, the last of two samples
  options.slots = {1, 3};
  std::vector<uint64_t> read;
  // With no policy nothing else is read ahead.
  const auto made = make_prefetcher(dataset, options, /*policy=*/nullptr);
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  Prefetcher& ahead = **made;
  for (Step step = options.first_step; step < options.end_step; ++step) {
    const StepPlan plan = plan_step(options.shape, step);
    const EpochOrder order(options.order, plan.epoch);
    for (uint32_t slot = options.slots.begin; slot < options.slots.end; ++slot) {
      const PositionRange range = slot_positions(plan, slot, options.shape.slots);
      if (range.size() == 0) continue;
      const PlannedBatch batch{step, slot, plan.epoch, range};
      ahead.before(batch);
      for (uint64_t p = range.begin; p < range.end; ++p) read.push_back(order.at(p));
      ASSERT_LE(read.size(), images->announced.size());
      // A batch of three may begin below the limit and end above it.
      EXPECT_LE(images->announced.size(), read.size() - range.size() + 8 + 2);
      ahead.after(batch);
    }
  }
  EXPECT_EQ(images->announced, read);
}

}  // namespace
}  // namespace lockstep::data
