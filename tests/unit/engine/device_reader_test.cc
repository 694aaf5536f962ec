// Memory of a device in pieces: all of it, in its order, however it is cut.
#include "worker/device/device_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/engine/plain_module.h"
#include "worker/device/wide_copy.h"

namespace lockstep {
namespace {

TEST(WideCopy, CopiesEveryByteByAsManyThreadsAsThereAreParts) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, kWideCopyPart - 1, 2 * kWideCopyPart, 3 * kWideCopyPart + 5}) {
    std::vector<std::byte> from(bytes);
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 4096);
    for (const uint32_t threads : {1u, 2u, 3u, 7u}) {
      std::vector<std::byte> to(bytes);
      const uint32_t parts = wide_copy(to.data(), from.data(), bytes, threads);
      EXPECT_TRUE(to == from) << bytes << " by " << threads;
      EXPECT_EQ(parts, std::clamp<size_t>(bytes / kWideCopyPart, 1, threads)) << bytes;
    }
  }
  EXPECT_GE(wide_copy_threads(), 1u);
}

TEST(DeviceReader, GivesAllRangesInTheirOrderThroughPiecesOfAnySize) {
  testing::PlainModule module;
  const std::string text = "the quick brown fox jumps over the lazy dog";
  void* const memory = *module.allocate(text.size());
  ASSERT_TRUE(module.copy(DeviceLane::kCompute, memory, text.data(), text.size()).is_ok());
  const auto at = [memory](size_t offset) { return static_cast<const char*>(memory) + offset; };
  const std::vector<DeviceReader::Range> ranges = {{at(10), 6}, {at(0), 0},   {at(4), 6},
                                                   {at(40), 3}, {at(16), 24}, {at(0), 0}};
  const std::string expected =
      text.substr(10, 6) + text.substr(4, 6) + text.substr(40, 3) + text.substr(16, 24);
  for (size_t piece = 1; piece <= expected.size() + 1; ++piece) {
    DeviceReader reader(module, piece);
    ASSERT_TRUE(reader.reserve().is_ok());
    for (int again = 0; again < 2; ++again) {
      std::string got;
      const Status status = reader.read(ranges, [&](const std::byte* bytes, size_t count) {
        EXPECT_LE(count, piece);
        got.append(reinterpret_cast<const char*>(bytes), count);
      });
      ASSERT_TRUE(status.is_ok()) << status.message();
      EXPECT_EQ(got, expected) << piece;
    }
  }
  DeviceReader none(module, 1);
  ASSERT_TRUE(none.reserve().is_ok());
  EXPECT_TRUE(
      none.read({}, [](const std::byte*, size_t) { FAIL() << "there is nothing"; }).is_ok());
}

TEST(DeviceReader, EndsWithTheErrorOfTheDevice) {
  testing::PlainModule module;
  const DeviceReader::Range range{*module.allocate(10), 10};
  DeviceReader reader(module, 4);
  ASSERT_TRUE(reader.reserve().is_ok());
  module.copies_to_fail = 1;
  EXPECT_EQ(reader.read({&range, 1}, [](const std::byte*, size_t) {}).code(), Code::kInternal);
}

}  // namespace
}  // namespace lockstep
