#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset/memory_dataset.h"
#include "data/loader/sample_reader.h"
#include "data/transform/normalize.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

std::unique_ptr<Dataset> example() {
  std::vector<uint8_t> pixels(2 * 2 * 3 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 5);
  return std::move(make_memory_dataset({2, 2, 3}, pixels, {1, 0, 2, 1})).value();
}

TEST(Transform, GivesTheBitsOfTheSameArithmeticInSinglePrecision) {
  const auto data = example();
  const std::vector<ChannelStatistics> statistics = {{0.25, 0.5}, {0.1307, 0.3081}};
  const auto transform = Transform::create({"normalize"}, statistics);
  ASSERT_TRUE(transform.is_ok());
  std::vector<float> out(12);
  transform.value().apply(stored_sample(*data, 3), data->shape(), out.data());
  for (size_t i = 0; i < 12; ++i) {
    const auto& channel = statistics[i / 6];
    const float scaled = static_cast<float>(stored_sample(*data, 3)[i]) / 255.0F;
    EXPECT_EQ(out[i],
              (scaled - static_cast<float>(channel.mean)) / static_cast<float>(channel.std));
  }
}

TEST(Transform, MakesAFloatOfEveryByteHoweverManyThereAre) {
  const auto transform = Transform::create({}, {{0, 1}});
  std::vector<uint8_t> bytes(13);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(17 * i + 1);
  for (uint32_t width = 1; width <= bytes.size(); ++width) {
    std::vector<float> out(bytes.size(), -1);
    transform.value().apply(bytes.data(), {1, 1, width}, out.data());
    for (size_t i = 0; i < bytes.size(); ++i)
      EXPECT_EQ(out[i], i < width ? static_cast<float>(bytes[i]) / 255.0F : -1) << width;
  }
}

TEST(Transform, WithoutNamesOnlyScalesToOne) {
  const auto data = example();
  const auto transform = Transform::create({}, data->statistics());
  std::vector<float> out(12);
  transform.value().apply(stored_sample(*data, 0), data->shape(), out.data());
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[11], 55.0F / 255.0F);
}

TEST(Transform, LeavesAConstantChannelFinite) {
  const auto transform = Transform::create({"normalize"}, {{1.0, 0.0}});
  const uint8_t white = 255;
  float out = -1;
  transform.value().apply(&white, {1, 1, 1}, &out);
  EXPECT_EQ(out, 0.0F);
}

TEST(ReadRange, GivesSamplesInNaturalOrder) {
  const auto data = example();
  const auto reader = SampleReader::create(*data, {}, data->statistics());
  std::vector<float> images(24);
  std::vector<int64_t> labels(2);
  ASSERT_TRUE(reader.value()
                  .read_range(2, 4, reinterpret_cast<std::byte*>(images.data()), labels.data())
                  .is_ok());
  EXPECT_EQ(labels, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(images[0], static_cast<float>(stored_sample(*data, 2)[0]) / 255.0F);
  EXPECT_EQ(images[12], static_cast<float>(stored_sample(*data, 3)[0]) / 255.0F);
}

TEST(ReadRange, GivesImagesAsStoredWhoseFloatsTheTablesHold) {
  const auto data = example();
  const auto transform = Transform::create({"normalize"}, data->statistics());
  const auto floats = SampleReader::create(*data, {"normalize"}, data->statistics());
  const auto stored =
      SampleReader::create(*data, {"normalize"}, data->statistics(), ImageForm::kStored);
  ASSERT_EQ(stored->input_bytes() * sizeof(float), floats->input_bytes());
  std::vector<float> images(stored->input_bytes());
  std::vector<uint8_t> bytes(images.size());
  int64_t label = -1;
  ASSERT_TRUE(floats->read(3, reinterpret_cast<std::byte*>(images.data()), &label).is_ok());
  ASSERT_TRUE(stored->read(3, reinterpret_cast<std::byte*>(bytes.data()), &label).is_ok());
  EXPECT_EQ(label, 1);
  const size_t plane = bytes.size() / transform->tables().size();
  for (size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(transform->tables()[i / plane][bytes[i]], images[i]) << i;
}

}  // namespace
}  // namespace lockstep::data
