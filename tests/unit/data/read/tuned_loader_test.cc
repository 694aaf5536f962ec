// Loaders whose threads and batches ahead change all the time deliver what others do.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <tuple>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/prng.h"
#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/loader.h"
#include "data/loader/loader_tuning.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"

namespace lockstep::data {
namespace {

// Wants something else after every few batches, by chance.
class Restless final : public LoaderTuning {
 public:
  explicit Restless(uint64_t seed) : LoaderTuning({.threads = 2, .ahead = 2}, 5), prng_(seed) {}

  bool took(const BatchTimes& times) override {
    makes_ns_ += times.make_ns;
    if (prng_.below(3) != 0) return false;
    setting_ = {static_cast<uint32_t>(1 + prng_.below(5)),
                static_cast<uint32_t>(1 + prng_.below(9))};
    ++changes_;
    return true;
  }

  uint64_t changes() const { return changes_; }
  uint64_t makes_ns() const { return makes_ns_; }

 private:
  Prng prng_;
  uint64_t changes_ = 0;
  uint64_t makes_ns_ = 0;
};

using Seen = std::tuple<Step, uint32_t, uint64_t, std::vector<uint8_t>, std::vector<int64_t>>;

std::vector<Seen> all_of(const Dataset& dataset, const std::vector<std::string>& transforms,
                         LoaderTuning* tuning) {
  LoaderOptions options;
  options.shape = {.samples = dataset.samples(), .global_batch = 4, .slots = 2};
  options.order = {3, dataset.fingerprint(), dataset.samples()};
  options.end_step = 60;
  options.slots = {0, 2};
  options.prefetch_batches = 2;
  options.transforms = transforms;
  options.threads = 2;
  options.tuning = tuning;
  const auto loader = Loader::start(dataset, options);
  EXPECT_TRUE(loader.is_ok()) << loader.status().message();
  std::vector<Seen> seen;
  while (true) {
    const auto batch = (*loader)->next();
    EXPECT_TRUE(batch.is_ok()) << batch.status().message();
    if (!batch.is_ok() || *batch == nullptr) return seen;
    const Batch& b = **batch;
    std::vector<uint8_t> bytes(b.samples * b.shape.elements() * sizeof(float));
    std::memcpy(bytes.data(), b.images, bytes.size());
    seen.emplace_back(b.step, b.slot, b.digest, std::move(bytes),
                      std::vector<int64_t>(b.labels, b.labels + b.samples));
  }
}

TEST(TunedLoader, OfEncodedImagesDeliversTheSame) {
  const TemporaryDirectory dir;
  for (uint32_t i = 0; i < 12; ++i) {
    const std::string label(1, static_cast<char>('a' + i % 3));
    std::filesystem::create_directories(dir.path("data/" + label));
    write_file(dir.path("data/" + label + "/" + std::to_string(i) + ".jpg"),
               jpeg_picture(40 + i, 50 - i, i));
  }
  const auto dataset = open_dataset(spec_of(dir.path("data")), Split::kTrain, dir.path("cache"), {},
                                    {.frame = {CropKind::kRandomResized, 16, 0}});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  const std::vector<std::string> transforms{"random_resized_crop=16", "flip", "normalize"};
  const std::vector<Seen> plain = all_of(**dataset, transforms, nullptr);
  ASSERT_EQ(plain.size(), 120U);
  for (const uint64_t seed : {1U, 2U, 3U}) {
    Restless restless(seed);
    EXPECT_EQ(all_of(**dataset, transforms, &restless), plain);
    EXPECT_GT(restless.changes(), 20U);
    EXPECT_GT(restless.makes_ns(), 0U);
  }
}

std::unique_ptr<Dataset> pixels() {
  const SampleShape shape{1, 3, 5};
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> labels;
  for (uint32_t i = 0; i < 103; ++i) {
    for (uint32_t k = 0; k < shape.elements(); ++k) bytes.push_back(static_cast<uint8_t>(i + k));
    labels.push_back(i % 7);
  }
  return std::move(make_memory_dataset(shape, bytes, labels)).value();
}

TEST(TunedLoader, OfStoredSamplesDeliversTheSame) {
  const auto dataset = pixels();
  const std::vector<Seen> plain = all_of(*dataset, {"flip", "normalize"}, nullptr);
  for (const uint64_t seed : {4U, 5U, 6U}) {
    Restless restless(seed);
    EXPECT_EQ(all_of(*dataset, {"flip", "normalize"}, &restless), plain);
    EXPECT_GT(restless.changes(), 20U);
  }
}

// With the clock of this machine, whatever that leads to: nothing of the training takes time, so it
// waits for every batch, and there is nothing that helps but threads, of which there are none.
TEST(TunedLoader, ComesToAnEndByTheRealClock) {
  const auto dataset = pixels();
  LoaderTuning tuning({.threads = 1, .ahead = 2});
  LoaderOptions options;
  options.shape = {.samples = dataset->samples(), .global_batch = 4, .slots = 1};
  options.order = {3, dataset->fingerprint(), dataset->samples()};
  options.slots = {0, 1};
  options.end_step = 1'000'000;
  options.prefetch_batches = 2;
  options.tuning = &tuning;
  const auto loader = Loader::start(*dataset, options);
  ASSERT_TRUE(loader.is_ok()) << loader.status().message();
  uint64_t taken = 0;
  while (!tuning.is_done()) {
    ASSERT_NE((*loader)->next().value(), nullptr);
    ++taken;
  }
  EXPECT_GE(taken, 64U);
  EXPECT_LE(taken, limits::kTuningWindows * (limits::kTuningWindowBatches + 200));
}

}  // namespace
}  // namespace lockstep::data
