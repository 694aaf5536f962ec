// Images stored as pixels, cut and scaled: they are what the same images in PNG files become, which
// decode_test.cc compares with Pillow.
#include "data/dataset/framed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/dataset/dataset.h"
#include "data/dataset/memory_dataset.h"
#include "data/image/image_decoder.h"
#include "data/image/raw_image.h"
#include "data/loader/loader.h"
#include "data/loader/sample_reader.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using Pixels = std::vector<uint8_t>;

constexpr uint32_t kWide = 45, kHigh = 30, kPictures = 3;
const ImageFrame kFrames[] = {
    {CropKind::kCenter, 24, 28}, {CropKind::kRandom, 32, 40}, {CropKind::kRandomResized, 16, 0},
    {CropKind::kCenter, 30, 0},  {CropKind::kRandom, 64, 0},  {CropKind::kRandomResized, 50, 60}};

std::vector<std::string> words_of(const ImageFrame& frame) {
  const char* names[] = {"", "center_crop=", "random_crop=", "random_resized_crop="};
  std::vector<std::string> words;
  if (frame.resize > 0) words.push_back("resize=" + std::to_string(frame.resize));
  words.push_back(names[static_cast<int>(frame.crop)] + std::to_string(frame.size));
  return words;
}

Pixels planes_of(const Pixels& interleaved, uint32_t channels) {
  Pixels planes;
  for (uint32_t c = 0; c < channels; ++c)
    for (size_t i = c; i < interleaved.size(); i += channels) planes.push_back(interleaved[i]);
  return planes;
}

std::unique_ptr<Dataset> pictures(bool channels_last) {
  Pixels pixels;
  for (uint32_t i = 0; i < kPictures; ++i) {
    const Pixels one = picture(kWide, kHigh, i);
    const Pixels stored = channels_last ? one : planes_of(one, 3);
    pixels.insert(pixels.end(), stored.begin(), stored.end());
  }
  SampleShape shape{3, kHigh, kWide};
  shape.channels_last = channels_last;
  return std::move(make_memory_dataset(shape, pixels, {0, 1, 2})).value();
}

Pixels read_one(const Dataset& dataset, const ImageFrame& frame, uint64_t i,
                std::optional<uint64_t> stream) {
  const auto reader =
      SampleReader::create(dataset, words_of(frame), dataset.statistics(), ImageForm::kStored);
  EXPECT_TRUE(reader.is_ok()) << reader.status().message();
  Pixels out(reader->input_bytes());
  int64_t label = -1;
  SampleHand hand;
  const Status status =
      reader->read(i, reinterpret_cast<std::byte*>(out.data()), &label, &hand, stream);
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(label, static_cast<int64_t>(label_of(dataset, i)));
  return out;
}

TEST(FramedDataset, ImagesAreCutAndScaledAsIfTheyLayInPngFiles) {
  ImageDecoder decoder;
  for (const ImageFrame& frame : kFrames) {
    const WantedImage wanted{frame, frame.size, frame.size, 3};
    for (const bool channels_last : {false, true}) {
      const auto framed = make_framed_dataset(pictures(channels_last), frame);
      ASSERT_TRUE(framed.is_ok()) << framed.status().message();
      EXPECT_EQ((*framed)->shape(), (SampleShape{3, frame.size, frame.size}));
      for (uint32_t i = 0; i < kPictures; ++i) {
        const std::string png = png_of(picture(kWide, kHigh, i), kWide, kHigh);
        for (const std::optional<uint64_t> stream : {std::optional<uint64_t>(), {5}, {6}}) {
          Pixels expected(size_t{3} * frame.size * frame.size);
          ASSERT_TRUE(decoder.decode(span_of(png), wanted, stream, expected.data()).is_ok());
          ASSERT_EQ(read_one(**framed, frame, i, stream), expected) << to_text(frame);
        }
      }
    }
  }
}

TEST(FramedDataset, GreyImagesAreScaledAsColoursThatAreAllTheSame) {
  const ImageFrame frame{CropKind::kRandomResized, 20, 0};
  Pixels grey(kWide * kHigh);
  std::iota(grey.begin(), grey.end(), uint8_t{0});
  Pixels colours;
  for (int c = 0; c < 3; ++c) colours.insert(colours.end(), grey.begin(), grey.end());
  const auto of_grey = make_framed_dataset(
      std::move(make_memory_dataset({1, kHigh, kWide}, grey, {0})).value(), frame);
  const auto of_colours = make_framed_dataset(
      std::move(make_memory_dataset({3, kHigh, kWide}, colours, {0})).value(), frame);
  for (uint64_t stream = 0; stream < 20; ++stream) {
    const Pixels one = read_one(**of_grey, frame, 0, stream);
    const Pixels three = read_one(**of_colours, frame, 0, stream);
    ASSERT_EQ(one.size(), 400U);
    for (size_t i = 0; i < three.size(); ++i) ASSERT_EQ(three[i], one[i % one.size()]);
  }
}

TEST(FramedDataset, IsWhatAnIdxFileBecomesWhereTheTransformsChangeItsSize) {
  TemporaryDirectory dir;
  write_file(dir.path("train-images-idx3-ubyte"), some_images(20, 9, 12));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(20, 4));
  const ImageFrame frame{CropKind::kRandom, 8, 10};
  const auto plain = open_dataset(spec_of(dir.path()), Split::kTrain, dir.path("cache"));
  const auto framed =
      open_dataset(spec_of(dir.path()), Split::kTrain, dir.path("cache"), {}, {.frame = frame});
  ASSERT_TRUE(plain.is_ok() && framed.is_ok()) << framed.status().message();
  EXPECT_EQ((*framed)->shape(), (SampleShape{1, 8, 8}));
  EXPECT_EQ((*framed)->fingerprint(), (*plain)->fingerprint());
  EXPECT_EQ((*framed)->statistics(), (*plain)->statistics());
  EXPECT_EQ((*framed)->name_of(7), (*plain)->name_of(7));
  EXPECT_EQ((*framed)->classes(), 4U);

  const auto batches = [&](uint32_t threads) {
    LoaderOptions options;
    options.shape = {.samples = 20, .global_batch = 6, .slots = 2};
    options.order = {0, (*framed)->fingerprint(), 20};
    options.end_step = 8;
    options.slots = {0, 2};
    options.transforms = {"resize=10", "random_crop=8", "flip", "normalize", "mixup"};
    options.threads = threads;
    auto loader = std::move(Loader::start(**framed, options)).value();
    std::vector<float> seen;
    while (const Batch* batch = loader->next().value())
      seen.insert(seen.end(), batch->images, batch->images + batch->samples * 64);
    return seen;
  };
  const std::vector<float> by_one = batches(1);
  EXPECT_EQ(by_one.size(), 40U * 64);
  EXPECT_EQ(batches(3), by_one);
}

TEST(FramedDataset, IsTheDataSetItselfWithoutAFrameAndOnlyOfOneOrThreeChannels) {
  auto stored = pictures(false);
  const Dataset* as_it_was = stored.get();
  EXPECT_EQ(make_framed_dataset(std::move(stored), {}).value().get(), as_it_was);
  auto two = make_memory_dataset({2, 4, 4}, Pixels(32), {0});
  EXPECT_THAT(make_framed_dataset(std::move(two).value(), kFrames[0]).status().message(),
              Says("three channels", "have 2"));
}

TEST(RawImage, OfWhichBytesAreMissingOrLieIsRefused) {
  const Pixels grey(6 * 4, 9);
  Pixels good;
  make_raw_image(grey.data(), {6, 4, 1, false}, good);
  ImageDecoder decoder;
  Pixels out(4);
  const WantedImage wanted{{CropKind::kCenter, 2, 0}, 2, 2, 1};
  const auto code_of = [&](const Pixels& bytes, const WantedImage& as = {}) {
    return decoder.decode(bytes, as.channels == 0 ? wanted : as, {}, out.data()).code();
  };
  EXPECT_EQ(code_of(good), Code::kOk);
  EXPECT_EQ(out, Pixels(4, 9));
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(code_of({good.begin(), good.begin() + static_cast<ptrdiff_t>(bytes)}),
              Code::kBadData);
  for (size_t i = 8; i < 24; ++i) {  // the header after its magic
    Pixels lying = good;
    for (const uint8_t byte : {0, 2, 7, 255}) {
      lying[i] = byte;
      if (lying == good) continue;
      EXPECT_EQ(code_of(lying), Code::kBadData) << i;
    }
  }
  EXPECT_EQ(code_of(good, {wanted.frame, 2, 2, 3}), Code::kBadData) << "colours of grey";
}

}  // namespace
}  // namespace lockstep::data
