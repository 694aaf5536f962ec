#include "data/dataset/records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "data/dataset/channel_statistics.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/statistics.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

struct Example {
  SampleShape shape{3, 4, 5};
  std::vector<uint8_t> pixels = std::vector<uint8_t>(uint64_t{60} * 50);
  std::vector<uint32_t> labels = std::vector<uint32_t>(50);
  std::string format = "idx";

  Example() {
    Prng prng(3);
    for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(prng.below(256));
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint32_t>(i % 10);
  }
  Records records() const {
    return {format,
            labels.size(),
            shape,
            {pixels},
            [this](uint64_t i) { return pixels.data() + i * shape.elements(); },
            [this](uint64_t i) { return labels[i]; }};
  }
  std::string fingerprint() const { return fingerprint_of(records()); }
};

TEST(Fingerprint, ChangesWithEverythingThatIsData) {
  std::set<std::string> seen;
  const auto add = [&](const auto& change) {
    Example example;
    change(example);
    seen.insert(example.fingerprint());
  };
  add([](Example&) {});
  add([](Example& e) { e.pixels[2'999] ^= 1; });
  add([](Example& e) { e.labels[49] = 1; });
  add([](Example& e) { std::swap(e.labels[0], e.labels[1]); });
  add([](Example& e) { e.shape = {3, 5, 4}; });
  add([](Example& e) { e.shape = {1, 12, 5}; });
  add([](Example& e) { e.format = "npy"; });
  add([](Example& e) {
    e.labels.pop_back();
    e.pixels.resize(e.pixels.size() - 60);
  });
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_EQ(Example().fingerprint(), Example().fingerprint());
}

TEST(Fingerprint, OfLargeContentReadsHeadTailAndBlocksBetween) {
  Example example;
  example.shape = {1, 100, 100};
  example.pixels.assign(50 * 10'000, 7);
  constexpr uint64_t kWhole = 100'000;
  const std::string before = fingerprint_of(example.records(), kWhole);
  EXPECT_NE(before, fingerprint_of(example.records()));
  for (const size_t place : {size_t{0}, size_t{4'095}, example.pixels.size() - 1}) {
    example.pixels[place] ^= 1;
    EXPECT_NE(before, fingerprint_of(example.records(), kWhole)) << place;
    example.pixels[place] ^= 1;
  }
  EXPECT_EQ(before, fingerprint_of(example.records(), kWhole));
}

TEST(Statistics, AreThoseOfEveryChannel) {
  const Example example;
  const std::vector<ChannelSums> sums = sums_of(example.records());
  ASSERT_EQ(sums.size(), 3U);
  for (uint32_t c = 0; c < 3; ++c) {
    double sum = 0;
    double squares = 0;
    for (uint64_t i = 0; i < 50; ++i)
      for (uint64_t k = 0; k < 20; ++k) {
        const double x = example.pixels[i * 60 + c * 20 + k] / 255.0;
        sum += x;
        squares += x * x;
      }
    const ChannelStatistics statistics = statistics_of(sums[c]);
    EXPECT_NEAR(statistics.mean, sum / 1'000, 1e-12);
    EXPECT_NEAR(statistics.std, std::sqrt(squares / 1'000 - sum * sum / 1e6), 1e-12);
  }
}

TEST(Statistics, OfLargePlanesDoNotOverflow) {
  Example example;
  example.shape = {1, 600, 600};
  example.pixels.assign(360'000, 255);
  example.labels = {0};
  const ChannelSums sums = sums_of(example.records())[0];
  EXPECT_EQ(sums, (ChannelSums{360'000, 255 * 360'000ULL, 65'025 * 360'000ULL}));
  EXPECT_EQ(statistics_of(sums), (ChannelStatistics{1.0, 0.0}));
}

std::vector<ChannelStatistics> stored(const Records& records, const std::string& key,
                                      const std::string& cache_dir) {
  return stored_statistics(key, records.shape.channels, cache_dir,
                           [&] { return sums_of(records); });
}

TEST(Statistics, AreComputedOnceAndNeverTakenFromADamagedFile) {
  const TemporaryDirectory dir;
  const Example example;
  const std::string fingerprint = example.fingerprint();
  const std::string path = dir.path("statistics-" + fingerprint + ".txt");
  const auto first = stored(example.records(), fingerprint, dir.path());
  const std::string good = slurp(path);

  // Stored numbers are used: with other pixels under the same fingerprint they stay.
  Example other;
  other.pixels.assign(other.pixels.size(), 0);
  EXPECT_EQ(stored(other.records(), fingerprint, dir.path()), first);

  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    write_file(path, damaged);
    ASSERT_EQ(stored(example.records(), fingerprint, dir.path()), first) << i;
    ASSERT_EQ(slurp(path), good) << "damage at byte " << i << " went unseen";
  }
  write_file(path, good.substr(0, good.size() / 2));
  EXPECT_EQ(stored(example.records(), fingerprint, dir.path()), first);
}

}  // namespace
}  // namespace lockstep::data
