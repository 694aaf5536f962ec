// The table that a transferred state begins with, whole and malformed.
#include "comm/run/checkpoint/state_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::TestState;

TEST(StateTable, SaysEverythingOfAStateButItsBytes) {
  TestState state = TestState::small(1);
  state.add(StateSection::kOptimizer, "fc.bias", DType::kF64, {0, 4});  // a name of a parameter
  const auto bytes = state_table(state.tensors());
  ASSERT_TRUE(bytes.is_ok());
  const auto table = parse_state_table(*bytes);
  ASSERT_TRUE(table.is_ok()) << table.status().message();
  ASSERT_EQ(table->tensors.size(), state.tensors().size());
  uint64_t sum = 0;
  for (size_t i = 0; i < table->tensors.size(); ++i) {
    const StateTensor& got = table->tensors[i];
    const StateTensor& expected = state.tensors()[i];
    EXPECT_EQ(got.section, expected.section);
    EXPECT_EQ(got.name, expected.name);
    EXPECT_EQ(got.dtype, expected.dtype);
    EXPECT_EQ(got.shape, expected.shape);
    EXPECT_EQ(got.bytes, expected.bytes);
    sum += expected.bytes;
  }
  EXPECT_EQ(table->bytes, sum);
  EXPECT_TRUE(parse_state_table(*state_table({}))->tensors.empty());
}

// Between programs of two builds the numbers must mean the same.
TEST(StateTable, EveryDTypeHasItsNumberItsNameAndItsSize) {
  const std::pair<const char*, size_t> expected[] = {
      {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U8", 1}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"BOOL", 1}};
  ASSERT_EQ(std::size(kDTypes), std::size(expected));
  for (size_t number = 0; number < std::size(kDTypes); ++number) {
    EXPECT_EQ(static_cast<size_t>(kDTypes[number]), number);
    EXPECT_STREQ(dtype_safetensors_name(kDTypes[number]), expected[number].first);
    EXPECT_EQ(dtype_bytes(kDTypes[number]), expected[number].second);
    TestState state;
    state.add(StateSection::kBuffer, "a", kDTypes[number], {3});
    const auto table = parse_state_table(*state_table(state.tensors()));
    ASSERT_TRUE(table.is_ok());
    EXPECT_EQ(table->tensors[0].dtype, kDTypes[number]);
    EXPECT_EQ(table->bytes, 3 * expected[number].second);
  }
}

TEST(StateTable, EveryCutAndAnythingBehindItIsRefused) {
  const std::string bytes = *state_table(TestState::small(1).tensors());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_state_table(bytes.substr(0, size)).status().code(), Code::kBadData) << size;
  EXPECT_THAT(parse_state_table(bytes + '\0').status(),
              FailsWith(Code::kBadData, HasSubstr("follows its last")));
}

// One tensor, "a" of shape [2]: number 0-3, length 4-5, name 6, section 7, dtype 8, dimensions 9,
// dim 10-17.
std::string one_tensor() {
  TestState state;
  state.add(StateSection::kParameter, "a", DType::kF32, {2});
  return *state_table(state.tensors());
}

TEST(StateTable, EveryFieldOutOfItsRangeIsRefusedByName) {
  const auto refused = [](size_t at, char value) {
    std::string bytes = one_tensor();
    bytes[at] = value;
    const auto table = parse_state_table(bytes);
    EXPECT_EQ(table.status().code(), Code::kBadData);
    return table.status().message();
  };
  EXPECT_THAT(refused(0, 2), HasSubstr("cut off"));
  EXPECT_THAT(refused(3, 1), HasSubstr("too many"));
  EXPECT_THAT(refused(5, 1), HasSubstr("cut off"));
  EXPECT_THAT(refused(7, 3), AllOf(HasSubstr("'a'"), HasSubstr("section, 3")));
  EXPECT_THAT(refused(8, 127), AllOf(HasSubstr("'a'"), HasSubstr("dtype, 127")));
  EXPECT_THAT(refused(9, 17), AllOf(HasSubstr("'a'"), HasSubstr("17 dimensions")));
  EXPECT_THAT(refused(17, '\x80'), AllOf(HasSubstr("'a'"), HasSubstr("no size")));  // negative
  EXPECT_THAT(refused(17, '\x7f'), AllOf(HasSubstr("'a'"), HasSubstr("no size")));  // overflow
  std::string unnamed = one_tensor();
  unnamed.erase(6, 1)[4] = 0;
  EXPECT_THAT(parse_state_table(unnamed).status().message(), HasSubstr("no name"));
}

TEST(StateTable, ANameTwiceAndASumOverflowAreRefused) {
  std::string twice = one_tensor();
  twice += twice.substr(4);
  twice[0] = 2;
  EXPECT_THAT(parse_state_table(twice).status().message(), HasSubstr("'a' comes twice"));
  twice[6] = 'b';
  EXPECT_TRUE(parse_state_table(twice).is_ok());
  twice[17] = twice[31] = 0x20;  // 2^61 floats each
  EXPECT_THAT(parse_state_table(twice).status().message(), HasSubstr("no size in bytes"));
}

TEST(StateTable, AStateOverTheLimitsHasNoTable) {
  TestState state;
  state.add(StateSection::kParameter, std::string(65'536, 'n'), DType::kU8, {1});
  EXPECT_EQ(state_table(state.tensors()).status().code(), Code::kUsage);
  const std::vector<StateTensor> many(limits::kTensors + 1);
  EXPECT_EQ(state_table(many).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace lockstep
