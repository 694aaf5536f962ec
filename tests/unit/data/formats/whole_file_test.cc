#include "data/files/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/support/idx_writer.h"
#include "tests/support/zstd_writer.h"

namespace lockstep::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct SeenWhole {
  std::string content;
  uint64_t bytes = 0;  // that came to the sink
  std::string error;
};

SeenWhole inflate_all(const std::string& packed, std::optional<uint64_t> promised = {},
                      size_t kept = SIZE_MAX) {
  SeenWhole result;
  const auto bytes = bytes_of(packed);
  const Status status = inflate_whole(whole_codec(bytes), bytes, promised,
                                      [&](std::span<const uint8_t> piece, uint64_t total) {
                                        EXPECT_EQ(total, promised.value_or(0));
                                        result.bytes += piece.size();
                                        if (result.content.size() < kept)
                                          result.content.append(piece.begin(), piece.end());
                                        return Status::ok();
                                      });
  EXPECT_TRUE(status.is_ok() || status.code() == Code::kBadData);
  result.error = status.message();
  return result;
}

// Every codec: what is said of either is the same.
class WholeFile : public testing::TestWithParam<const char*> {
 protected:
  static std::string packed(const std::string& plain) {
    return GetParam() == std::string("gzip") ? gzip_bytes(plain) : zstd_bytes(plain);
  }
};

INSTANTIATE_TEST_SUITE_P(, WholeFile, testing::Values("gzip", "zstd"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(WholeFile, GivesBackWhatWasCompressed) {
  for (const std::string& plain : {some_labels(3), some_images(1'000, 28, 28), std::string()}) {
    EXPECT_EQ(inflate_all(packed(plain)).content, plain);
    EXPECT_EQ(inflate_all(packed(plain), plain.size()).content, plain);
    EXPECT_EQ(inflate_all(packed(plain), plain.size()).error, "");
  }
}

TEST_P(WholeFile, ReadsSeveralMembersAsOne) {
  const std::string plain = some_images(50, 9, 9);
  const std::string two = packed(plain.substr(0, 1'000)) + packed(plain.substr(1'000));
  EXPECT_EQ(inflate_all(two).content, plain);
  EXPECT_EQ(inflate_all(two, plain.size()).error, "");
}

TEST_P(WholeFile, FindsEveryTruncation) {
  const std::string whole = packed(some_images(20, 5, 5));
  for (size_t bytes = 4; bytes < whole.size(); ++bytes)
    EXPECT_THAT(inflate_all(whole.substr(0, bytes)).error, HasSubstr("is truncated")) << bytes;
}

TEST_P(WholeFile, NeverTakesDamagedContentForGood) {
  const std::string plain = some_images(20, 5, 5);
  const std::string whole = packed(plain);
  for (size_t at = 4; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const SeenWhole result = inflate_all(damaged);
    // Some bytes of gzip's head say nothing about the content.
    EXPECT_TRUE(!result.error.empty() || result.content == plain) << at;
  }
  EXPECT_NE(inflate_all(whole + "behind").error, "");
}

TEST_P(WholeFile, APromiseIsKeptToTheByte) {
  const std::string plain = some_images(20, 5, 5);
  EXPECT_THAT(inflate_all(packed(plain), plain.size() - 1).error,
              AllOf(Says("more than", std::to_string(plain.size() - 1) + " bytes"),
                    Advises("copy it again")));
  EXPECT_THAT(inflate_all(packed(plain), plain.size() + 1).error, HasSubstr("less than the"));
  EXPECT_THAT(inflate_all(packed(plain), 0).error, Says("more than", "0 bytes"));
}

TEST_P(WholeFile, ABombEndsAtItsLimit) {
  const std::string bomb = packed(std::string(200'000'000, '\0'));
  const uint64_t most = bomb.size() * limits::kWholeInflateRatio + limits::kWholeInflateBytes;
  ASSERT_LT(most, 100'000'000U);
  const SeenWhole result = inflate_all(bomb, {}, 0);
  EXPECT_THAT(result.error, AllOf(Says("200 times"), Advises("unpack")));
  EXPECT_LE(result.bytes, most);
  // It is refused by what an index says, before anything is inflated.
  const SeenWhole promised = inflate_all(bomb, 200'000'000, 0);
  EXPECT_THAT(promised.error, Says("200 times"));
  EXPECT_EQ(promised.bytes, 0U);
  EXPECT_THAT(inflate_all(bomb, UINT64_MAX, 0).error, Says("200 times"));
}

TEST(WholeFiles, AreKnownByTheirFirstBytes) {
  EXPECT_EQ(whole_codec(bytes_of(gzip_bytes("x"))), WholeCodec::kGzip);
  EXPECT_EQ(whole_codec(bytes_of(zstd_bytes("x"))), WholeCodec::kZstd);
  for (const char* other : {"", "\x1f", "\x28\xb5\x2f", "text", "BZh9"})
    EXPECT_EQ(whole_codec(bytes_of(other)), WholeCodec::kNone) << other;
}

TEST(WholeFiles, MemoryIsNotWhatTheBytesSay) {
  const std::string plain = some_images(10, 5, 5);
  EXPECT_EQ(inflate_all(zstd_bytes(plain, true, 27)).content, plain);
  EXPECT_THAT(inflate_all(zstd_bytes(plain, true, 28)).error,
              AllOf(Says("128 MiB"), Advises("compress")));
}

}  // namespace
}  // namespace lockstep::data
