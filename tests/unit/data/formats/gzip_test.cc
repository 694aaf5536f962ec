
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/formats/arrays/idx_inflate.h"
#include "tests/support/fails_with.h"
#include "tests/support/idx_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;

// Holds what inflate_idx() hands over, or its message.
struct Inflated {
  std::string content;
  std::string error;
};

Inflated inflate(const std::string& compressed) {
  Inflated result;
  const auto bytes = bytes_of(compressed);
  const auto header = inflate_idx(bytes, [&](std::span<const uint8_t> piece, uint64_t) {
    result.content.append(piece.begin(), piece.end());
    return Status::ok();
  });
  if (!header.is_ok()) {
    EXPECT_EQ(header.status().code(), Code::kBadData);
    result.error = header.status().message();
  }
  return result;
}

TEST(Gzip, GivesBackWhatWasCompressed) {
  const std::string small = some_labels(3);
  const std::string large = some_images(1'000, 28, 28);
  EXPECT_EQ(inflate(gzip_bytes(small)).content, small);
  EXPECT_EQ(inflate(gzip_bytes(large)).content, large);
  EXPECT_EQ(inflate(gzip_bytes(large)).error, "");
}

TEST(Gzip, ReadsSeveralMembersAsOne) {
  const std::string plain = some_images(50, 9, 9);
  const std::string two = gzip_bytes(plain.substr(0, 1'000)) + gzip_bytes(plain.substr(1'000));
  EXPECT_EQ(inflate(two).content, plain);
  EXPECT_EQ(inflate(two).error, "");
}

// 4 GiB of zeros deflate to 4 MiB: what a header promises is refused before anything is written.
TEST(Gzip, ABombIsRefusedByWhatItPromises) {
  const std::string header{"\0\0\x08\x03\0\x10\0\0\0\0\0\x40\0\0\0\x40", 16};
  const Inflated idx = inflate(gzip_bytes(header + std::string(64 * 64, '\0')));
  EXPECT_THAT(idx.error, AllOf(Says("200 times"), Advises("unpack")));
  EXPECT_EQ(idx.content, "");
  // The same for an array of an npz.
  const auto packed = bytes_of(gzip_bytes(header));
  const Status npz = inflate_bare(packed, uint64_t{1} << 32, 0, [](const auto&, uint64_t) {
    ADD_FAILURE() << "nothing is passed on";
    return Status::ok();
  });
  EXPECT_THAT(npz, FailsWith(Code::kBadData, Says("200 times"), Advises("unpack")));
}

TEST(Gzip, FindsEveryTruncation) {
  const std::string whole = gzip_bytes(some_images(20, 5, 5));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(inflate(whole.substr(0, size)).error, "") << "cut at " << size;
}

TEST(Gzip, FindsAChecksumOrLengthThatDoesNotFit) {
  const std::string whole = gzip_bytes(some_images(20, 5, 5));
  for (size_t back = 1; back <= 8; ++back) {
    std::string damaged = whole;
    damaged[damaged.size() - back] ^= 1;
    EXPECT_THAT(inflate(damaged).error, Says("corrupt", "incorrect")) << back;
  }
}

TEST(Gzip, NeverTakesDamagedContentForGood) {
  // Stored blocks: a changed byte inflates without complaint, only the CRC knows. A bit of padding
  // may change nothing.
  const std::string plain = some_images(20, 5, 5);
  const std::string whole = gzip_bytes(plain, 0);
  int found = 0;
  for (size_t i = 10; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 0x20;
    const Inflated result = inflate(damaged);
    EXPECT_TRUE(!result.error.empty() || result.content == plain) << "byte " << i;
    found += result.error.empty() ? 0 : 1;
  }
  EXPECT_GE(found, 500);
}

TEST(Gzip, RefusesMoreOrLessThanTheHeaderPromises) {
  const std::string plain = some_images(20, 5, 5);
  EXPECT_THAT(inflate(gzip_bytes(plain + "x")).error, Says("more than", "516"));
  EXPECT_THAT(inflate(gzip_bytes(plain.substr(0, 515))).error, Says("truncated", "515", "516"));
  EXPECT_THAT(inflate(gzip_bytes(plain) + "trailing").error, Says("after the end"));
}

TEST(Gzip, StopsABombAtThePromisedSize) {
  const std::string bomb = some_labels(3) + std::string(50'000'000, '\0');
  const Inflated result = inflate(gzip_bytes(bomb, 9));
  EXPECT_THAT(result.error, Says("more than", "11"));
  EXPECT_LE(result.content.size(), 36U);
}

}  // namespace
}  // namespace lockstep::data
