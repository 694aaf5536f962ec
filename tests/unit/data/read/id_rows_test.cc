#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "data/dataset/facts.h"
#include "data/dataset/fields.h"
#include "data/loader/sample_reader.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/array_files.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

constexpr uint64_t kRows = 4;

class IdRows : public testing::TestWithParam<std::string> {
 protected:
  template <typename T>
  Result<std::unique_ptr<Dataset>> opened_of(const std::string& descr, const std::vector<T>& ids) {
    std::filesystem::remove_all(dir_.path("data"));
    write_arrays(
        dir_.path("data"), "", GetParam(),
        {test_array("input_ids", descr, {kRows, ids.size() / kRows}, ids),
         test_array<uint8_t>("attention_mask", "|u1", {kRows, 2}, {1, 0, 1, 1, 1, 0, 1, 1}),
         test_array<int64_t>("label", "<i8", {kRows}, {0, 1, 2, 0})});
    return open_dataset(
        spec_of(dir_.path("data")), Split::kTrain, cache_.path(), {},
        {.columns = {.inputs = {"input_ids", "attention_mask"}, .targets = {"label"}}});
  }
  template <typename T>
  void expect_ids(const std::string& descr) {
    SCOPED_TRACE(descr);
    const auto opened = opened_of<T>(descr, {0, 1, 2, 3, 4, 5, 6, 100});
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    const Dataset& data = **opened;
    EXPECT_EQ(data.shape().id_bytes, sizeof(T));
    EXPECT_EQ(data.shape().labels(), 1U) << "a label of its own, not the next token";
    EXPECT_EQ(text_of(*data.shape().fields), "attention_mask (uint8 2), label (class)");
    const auto reader = SampleReader::create(data, {}, {});
    ASSERT_TRUE(reader.is_ok());
    std::vector<int64_t> ids(2 * 2);
    EXPECT_EQ(reader->input_bytes(), 2 * sizeof(int64_t));
    std::vector<int64_t> labels(2 * data.shape().label_words());
    ASSERT_TRUE(
        reader->read_range(2, 4, reinterpret_cast<std::byte*>(ids.data()), labels.data()).is_ok());
    EXPECT_THAT(ids, ElementsAre(4, 5, 6, 100));
    EXPECT_EQ(labels[0], 2);
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

TEST_P(IdRows, WholeNumbersOfAnyWidthBecomeInt64) {
  expect_ids<uint8_t>("|u1");
  expect_ids<int8_t>("|i1");
  expect_ids<uint16_t>("<u2");
  expect_ids<int16_t>("<i2");
  expect_ids<uint32_t>("<u4");
  expect_ids<int32_t>("<i4");
  expect_ids<uint64_t>("<u8");
  expect_ids<int64_t>("<i8");
}

TEST_P(IdRows, AnIdBelow0OrBeyondInt64IsNamedWithArrayAndSample) {
  for (const auto& opened :
       {opened_of<int32_t>("<i4", {0, 1, 2, 3, -1, 5, 6, 7}).status(),
        opened_of<int8_t>("|i1", {0, 1, 2, 3, 4, -100, 6, 7}).status(),
        opened_of<uint64_t>("<u8", {0, 1, 2, 3, ~uint64_t{0}, 5, 6, 7}).status()})
    EXPECT_THAT(opened, FailsWith(Code::kBadData, Names("input_ids", "sample 2", "id"),
                                  Advises("correct it")));
}

TEST_P(IdRows, NoTransformTakesThem) {
  const auto opened = opened_of<int64_t>("<i8", {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_TRUE(opened.is_ok());
  for (const char* word : {"normalize", "flip"})
    EXPECT_THAT(SampleReader::create(**opened, {word}, {}),
                FailsWith(Code::kUsage, Names("data.transforms", word, "ids"),
                          Advises("set data.transforms to []")))
        << word;
}

INSTANTIATE_TEST_SUITE_P(Formats, IdRows, testing::Values(".npy", ".npz", ".safetensors"),
                         [](const auto& tested) { return tested.param.substr(1); });

}  // namespace
}  // namespace lockstep::data
