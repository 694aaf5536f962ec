#include "data/formats/arrays/idx_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/limits.h"
#include "data/dataset/sample_shape.h"
#include "tests/support/fails_with.h"
#include "tests/support/idx_writer.h"

namespace lockstep::data {
namespace {

using testing::HasSubstr;

Result<IdxHeader> parse(const std::string& bytes) {
  return parse_idx_header(bytes_of(bytes));
}

std::string error_of(const std::string& bytes) {
  const auto header = parse(bytes);
  if (header.is_ok()) return "";
  EXPECT_EQ(header.status().code(), Code::kBadData);
  return header.status().message();
}

TEST(IdxHeader, TellsShapeAndSizes) {
  const auto header = parse(idx_bytes(0x08, {60'000, 28, 28}, ""));
  ASSERT_TRUE(header.is_ok());
  EXPECT_EQ(header.value().header_bytes, 16U);
  EXPECT_EQ(header.value().content_bytes, 47'040'000U);
  EXPECT_EQ(image_shape(header.value()).value(), (SampleShape{1, 28, 28}));

  const auto colour = parse(idx_bytes(0x08, {10, 3, 32, 16}, ""));
  EXPECT_EQ(image_shape(colour.value()).value(), (SampleShape{3, 32, 16}));
}

TEST(IdxHeader, RefusesWhatIsNoIdxFile) {
  EXPECT_THAT(error_of(""), HasSubstr("truncated"));
  EXPECT_THAT(error_of(std::string("\x00\x00\x08", 3)), HasSubstr("truncated"));
  EXPECT_THAT(error_of("PNG file, really"), Says("0x504e4720"));
  EXPECT_THAT(error_of(idx_bytes(0x07, {1}, "x")), Says("0x00000701"));
  EXPECT_THAT(error_of(idx_bytes(0x08, {}, "x")), Says("IDX"));
  EXPECT_THAT(error_of(idx_bytes(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "")),
              HasSubstr("9 dimensions"));
  EXPECT_THAT(error_of(idx_bytes(0x08, {5, 5}, "").substr(0, 11)), HasSubstr("truncated"));
}

TEST(IdxHeader, RefusesSizesWhoseProductOverflows) {
  const uint32_t most = 0xffffffff;
  EXPECT_THAT(error_of(idx_bytes(0x08, {most, most, most, most, most, most, most, most}, "")),
              Says("limit"));
  // 2^32 * 2^32 = 2^64 wraps to 0 without the check.
  EXPECT_THAT(error_of(idx_bytes(0x08, {1U << 31, 1U << 31, 4}, "")), Says("limit"));
  EXPECT_THAT(error_of(idx_bytes(0x0e, {1U << 31, 1U << 12}, "")), Says("limit"));
  EXPECT_TRUE(parse(idx_bytes(0x08, {1U << 31, 1U << 13}, "")).is_ok());
}

TEST(IdxHeader, RefusesImagesAndLabelsThatAreNone) {
  const auto refused = [](uint8_t type, const std::vector<uint32_t>& dims) {
    const auto header = parse(idx_bytes(type, dims, ""));
    return !header.is_ok() ||
           (!image_shape(header.value()).is_ok() && !check_label_header(header.value()).is_ok());
  };
  EXPECT_TRUE(refused(0x08, {0, 28, 28}));
  EXPECT_TRUE(refused(0x08, {5, 0, 28}));
  EXPECT_TRUE(refused(0x08, {0}));
  EXPECT_TRUE(refused(0x08, {5, 5}));
  EXPECT_TRUE(refused(0x0d, {5}));
  EXPECT_TRUE(refused(0x0d, {5, 28, 28}));
  EXPECT_TRUE(refused(0x08, {1, 65'535, 65'535}));  // one sample of 4 GiB
}

TEST(IdxHeader, ReadsLabelsOfEveryWidth) {
  const auto label = [](uint8_t type, const std::string& content, uint64_t i) {
    const auto header = parse(idx_bytes(type, {2}, ""));
    const auto bytes = bytes_of(content);
    return label_at(header.value(), bytes.data(), i);
  };
  EXPECT_EQ(label(0x08, "\x01\xff", 1), 255);
  EXPECT_EQ(label(0x0b, std::string("\x01\x02\xff\xff", 4), 0), 258);
  EXPECT_EQ(label(0x0b, std::string("\x01\x02\xff\xff", 4), 1), -1);
  EXPECT_EQ(label(0x0c, std::string("\x00\x01\x00\x02\x80\x00\x00\x00", 8), 0), 65'538);
  EXPECT_EQ(label(0x0c, std::string("\x00\x01\x00\x02\x80\x00\x00\x00", 8), 1), -2'147'483'648LL);
}

}  // namespace
}  // namespace lockstep::data
