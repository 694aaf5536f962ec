#include "data/view/selected_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/loader/loader.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;

// Sample i is two bytes that say its number; its label is i modulo 7.
std::unique_ptr<Dataset> numbered(uint32_t samples) {
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> labels;
  for (uint32_t i = 0; i < samples; ++i) {
    pixels.push_back(static_cast<uint8_t>(i >> 8));
    pixels.push_back(static_cast<uint8_t>(i));
    labels.push_back(i % 7);
  }
  return std::move(make_memory_dataset({1, 1, 2}, std::move(pixels), std::move(labels))).value();
}

uint32_t number_of(const uint8_t* sample) {
  return uint32_t{sample[0]} << 8 | sample[1];
}

std::set<uint32_t> numbers(const Dataset& dataset) {
  std::set<uint32_t> found;
  for (uint64_t i = 0; i < dataset.samples(); ++i) {
    const uint32_t number = number_of(stored_sample(dataset, i));
    EXPECT_EQ(label_of(dataset, i), number % 7);
    EXPECT_TRUE(found.insert(number).second);
  }
  return found;
}

TEST(SelectedDataset, HeldOutAndKeptSamplesAreTogetherAllOfThem) {
  const auto parts = split(numbered(9'000), {.held_out = 0.05});
  ASSERT_TRUE(parts.is_ok());
  EXPECT_EQ(parts->held_out->samples(), 450U);
  EXPECT_EQ(parts->kept->samples(), 8'550U);
  std::set<uint32_t> all = numbers(*parts->held_out);
  all.merge(numbers(*parts->kept));
  EXPECT_EQ(all.size(), 9'000U);
}

TEST(SelectedDataset, HasTheClassesAndTheStatisticsOfTheWhole) {
  const auto whole = numbered(600);
  const auto part = select_kept(numbered(600), {.kept = 0.01});
  ASSERT_TRUE(part.is_ok());
  EXPECT_EQ((*part)->samples(), 6U);
  EXPECT_EQ((*part)->classes(), 7U);
  EXPECT_EQ((*part)->statistics(), whole->statistics());
  EXPECT_EQ((*part)->shape(), whole->shape());
}

TEST(SelectedDataset, HasAnotherFingerprintForEveryOtherSelection) {
  std::set<std::string> seen;
  for (const SelectionSpec& spec :
       {SelectionSpec{}, SelectionSpec{0, 0.5, 0}, SelectionSpec{0, 0.5, 1},
        SelectionSpec{0, 0.25, 0}, SelectionSpec{0.5, 1, 0}, SelectionSpec{0.5, 0.5, 0}})
    seen.insert((*select_kept(numbered(600), spec))->fingerprint());
  seen.insert(split(numbered(600), {0.5, 1, 0})->held_out->fingerprint());
  seen.insert((*select_kept(numbered(601), {0, 0.5, 0}))->fingerprint());
  EXPECT_EQ(seen.size(), 8U);
  // Which samples are held out does not depend on what is trained on.
  EXPECT_EQ(split(numbered(600), {0.5, 0.5, 0})->held_out->fingerprint(),
            split(numbered(600), {0.5, 1, 0})->held_out->fingerprint());
}

TEST(SelectedDataset, OfAllSamplesIsTheDataSetItself) {
  auto whole = numbered(60);
  const Dataset* before = whole.get();
  const auto all = select_kept(std::move(whole), {0, 1, 9});
  EXPECT_EQ(all->get(), before);
}

TEST(SelectedDataset, NamesASampleByItsPlaceInTheFiles) {
  const auto whole = numbered(600);
  const auto part = select_kept(numbered(600), {.kept = 0.1});
  const uint64_t in_whole = number_of(stored_sample(**part, 17));
  EXPECT_EQ((*part)->name_of(17), whole->name_of(in_whole));
}

// Its samples as a reader finds them that knows nothing of the selection.
TEST(SelectedDataset, SamplesLieWhereTheyLieInTheFiles) {
  const TemporaryDirectory dir;
  write_file(dir.path("train-images-idx3-ubyte"), some_images(60, 5, 7));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(60));
  auto whole = open_dataset(spec_of(dir.path("")), Split::kTrain, dir.path("cache"), {}, {});
  ASSERT_TRUE(whole.is_ok()) << whole.status().message();
  const auto parts = split(std::move(*whole), {.held_out = 0.4, .kept = 0.5});
  ASSERT_TRUE(parts.is_ok());
  for (const Dataset* part : {parts->kept.get(), parts->held_out.get()})
    for (uint64_t i = 0; i < part->samples(); ++i) {
      const auto extent = part->extent(i);
      ASSERT_TRUE(extent);
      std::vector<uint8_t> read(extent->bytes);
      ASSERT_TRUE(read_extent(*extent, read.data()).is_ok());
      EXPECT_EQ(std::memcmp(read.data(), stored_sample(*part, i), part->shape().stored_bytes()), 0)
          << i;
    }
  EXPECT_FALSE((*select_kept(numbered(600), {.kept = 0.1}))->extent(0)) << "of memory";
}

TEST(SelectedDataset, WithoutASampleIsRefused) {
  const auto none = split(numbered(600), {.held_out = 0.001});
  EXPECT_THAT(none, FailsWith(Code::kUsage, Says("0.001", "600 samples", "less than one"),
                              HasSubstr("data.holdout")));
  const auto all = split(numbered(600), {.held_out = 0.9999999999});
  EXPECT_THAT(all.status().message(), Says("leaves none"));
  EXPECT_THAT(select_kept(numbered(600), {.kept = 0.001}).status().message(), Advises("larger"));
}

// The loader reads the very samples of the selection, each once an epoch.
TEST(SelectedDataset, IsReadOnceAnEpochByTheLoader) {
  const auto part = select_kept(numbered(900), {.kept = 0.1});
  LoaderOptions options;
  options.shape = {90, 16, 2};
  options.order = {3, (*part)->fingerprint(), 90};
  options.end_step = steps_per_epoch(options.shape);
  options.slots = {0, 2};
  options.form = ImageForm::kStored;
  options.transforms = {};
  const auto loader = Loader::start(**part, options);
  ASSERT_TRUE(loader.is_ok()) << loader.status().message();
  std::set<uint32_t> seen;
  uint64_t count = 0;
  for (;;) {
    const auto batch = (*loader)->next();
    ASSERT_TRUE(batch.is_ok());
    if (*batch == nullptr) break;
    for (uint32_t i = 0; i < (*batch)->samples; ++i, ++count)
      seen.insert(number_of((*batch)->stored + uint64_t{i} * 2));
  }
  EXPECT_EQ(count, 90U);
  EXPECT_EQ(seen, numbers(**part));
}

}  // namespace
}  // namespace lockstep::data
