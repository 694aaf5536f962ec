#include "comm/run/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/base/little_endian.h"
#include "tests/support/fails_with.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TestState;

std::string file_of(const SafetensorsPlan& plan) {
  std::string file = plan.prefix;
  for (const StateTensor* tensor : plan.order)
    file.append(reinterpret_cast<const char*>(tensor->data), tensor->bytes);
  return file;
}

Result<SafetensorsHeader> parse(const std::string& file) {
  auto bytes = safetensors::parse_prefix(file, file.size());
  if (!bytes.is_ok()) return bytes.status();
  return parse_safetensors_header(std::string_view(file).substr(8, *bytes), file.size());
}

// Parses a file with this header and so many bytes of data.
Result<SafetensorsHeader> parse_json(const std::string& header, uint64_t data_bytes) {
  return parse_safetensors_header(header, 8 + header.size() + data_bytes);
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  TestState state = TestState::small(1);
  const auto plan = plan_safetensors(state.tensors(), {{"format", "pt"}});
  ASSERT_TRUE(plan.is_ok());
  const std::string file = file_of(*plan);
  EXPECT_EQ(file.size(), plan->file_bytes);
  const auto header = parse(file);
  ASSERT_TRUE(header.is_ok()) << header.status().message();
  EXPECT_EQ(header->tensors.size(), state.tensors().size());
  EXPECT_EQ(header->metadata.at("format"), "pt");
  for (const SafetensorsEntry& entry : header->tensors) {
    const auto tensor = std::find_if(state.tensors().begin(), state.tensors().end(),
                                     [&](const auto& t) { return t.name == entry.name; });
    ASSERT_NE(tensor, state.tensors().end());
    EXPECT_EQ(entry.shape, tensor->shape);
    EXPECT_EQ(entry.dtype, tensor->dtype);
    EXPECT_EQ(0, std::memcmp(file.data() + header->data_begin + entry.begin, tensor->data,
                             tensor->bytes));
    EXPECT_EQ((header->data_begin + entry.begin) % dtype_bytes(entry.dtype), 0u) << entry.name;
  }
}

TEST(Safetensors, TheBytesOfASmallFileAreExactlyThese) {
  TestState state;
  state.add(StateSection::kParameter, "w", DType::kF32, {2});
  const float values[2] = {1.0f, -2.0f};
  std::memcpy(state.tensors()[0].data, values, sizeof values);
  const auto plan = plan_safetensors(state.tensors(), {});
  ASSERT_TRUE(plan.is_ok());
  const std::string json = R"({"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  std::string expected;
  append_le64(expected, (json.size() + 7) / 8 * 8);
  expected += json;
  expected.resize(8 + (json.size() + 7) / 8 * 8, ' ');
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  EXPECT_EQ(file_of(*plan), expected);
}

TEST(Safetensors, APromisedHeaderOfAnyLengthCostsNothing) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{9}, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::string file;
    append_le64(file, length);
    file += "{}";
    EXPECT_FALSE(parse(file).is_ok()) << length;
  }
  EXPECT_FALSE(parse("").is_ok());
  EXPECT_FALSE(parse("1234567").is_ok());
}

TEST(Safetensors, OverlapHoleAndForeignEndAreRefused) {
  const std::string a = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)";
  EXPECT_TRUE(
      parse_json(a + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8).is_ok());
  const auto overlap =
      parse_json(a + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6);
  EXPECT_THAT(overlap.status().message(), HasSubstr("'b' overlaps"));
  const auto hole = parse_json(a + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12);
  EXPECT_THAT(hole.status().message(), AllOf(Names("'b'"), Says("hole")));
  const auto tail = parse_json(a + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 9);
  EXPECT_FALSE(tail.is_ok());
  const auto missing =
      parse_json(a + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 7);
  EXPECT_FALSE(missing.is_ok());
}

TEST(Safetensors, AHostileHeaderIsAnErrorThatNamesTheTensor) {
  const auto refused = [](const std::string& body, uint64_t bytes = 4) {
    const auto header = parse_json(R"({"w":)" + body + "}", bytes);
    return header.is_ok() ? std::string("accepted") : header.status().message();
  };
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"),
              HasSubstr("'w'"));  // times 4 overflows to 4
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), HasSubstr("'w'"));
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), HasSubstr("'w'"));
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), HasSubstr("'w'"));
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})"),
              HasSubstr("'w'"));
  EXPECT_THAT(refused(R"({"dtype":"F8","shape":[1],"data_offsets":[0,4]})"), HasSubstr("'w'"));
  EXPECT_THAT(refused(R"({"dtype":"F32","shape":[1]})"), HasSubstr("'w'"));
  EXPECT_THAT(refused("[" + std::string(100'000, '[')), Says("not a valid"));
  EXPECT_THAT(refused("7"), HasSubstr("'w'"));
  const auto twice = parse_json(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                4);
  EXPECT_THAT(twice.status().message(), HasSubstr("twice"));
}

TEST(Safetensors, TensorsThatCannotBeWrittenAreRefused) {
  TestState same;
  same.add(StateSection::kParameter, "w", DType::kF32, {2});
  same.add(StateSection::kBuffer, "w", DType::kF32, {2});
  EXPECT_EQ(plan_safetensors(same.tensors(), {}).status().code(), Code::kUsage);
  TestState odd;
  odd.add(StateSection::kParameter, "w", DType::kF32, {2});
  odd.tensors()[0].bytes = 7;
  EXPECT_EQ(plan_safetensors(odd.tensors(), {}).status().code(), Code::kUsage);
}

RC_GTEST_PROP(Safetensors, AnyShapesComeBackAndAnyDamageNeverCrashes, ()) {
  TestState state;
  const auto count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const auto dims = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 4));
    const auto dtype =
        *rc::gen::elementOf(std::vector<DType>(std::begin(kDTypes), std::end(kDTypes)));
    if (dims.size() > 6) continue;
    state.add(StateSection::kParameter, "t" + std::to_string(i), dtype, dims);
  }
  const auto plan = plan_safetensors(state.tensors(), {});
  RC_ASSERT(plan.is_ok());
  std::string file = file_of(*plan);
  RC_ASSERT(parse(file).is_ok());
  const size_t at = *rc::gen::inRange<size_t>(0, file.size());
  file[at] = static_cast<char>(file[at] ^ *rc::gen::inRange(1, 256));
  (void)parse(file);  // any answer, no crash
}

}  // namespace
}  // namespace lockstep
