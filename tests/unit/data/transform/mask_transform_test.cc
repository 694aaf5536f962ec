// A mask shows the same part of the picture as its image, whatever data.transforms do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "data/dataset/dataset.h"
#include "data/loader/sample_reader.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/mask_writer.h"

namespace lockstep::data {
namespace {

using MaskWords = std::vector<std::string>;
using MaskPlane = std::vector<uint8_t>;

constexpr uint32_t kMaskWide = 96;
constexpr uint32_t kMaskHigh = 72;
constexpr uint64_t kMaskStreams = kIsSanitized ? 60 : 300;

struct ReadSample {
  MaskPlane image;  // (C, H, W)
  std::vector<MaskPlane> masks;
};

// One image, and masks of its size.
class MaskTransformTest : public testing::Test {
 protected:
  void put(const std::string& directory, const std::string& content) {
    std::filesystem::create_directories(dir_.path("data/" + directory));
    write_file(dir_.path("data/" + directory + "/a.png"), content);
  }

  // `of`: the value of a pixel.
  template <typename Of>
  static MaskPlane plane(const Of& of) {
    MaskPlane values;
    for (uint32_t y = 0; y < kMaskHigh; ++y)
      for (uint32_t x = 0; x < kMaskWide; ++x) values.push_back(static_cast<uint8_t>(of(x, y)));
    return values;
  }

  // read(stream) with these transforms, as training does.
  template <typename Each>
  void for_streams(const MaskWords& words, const MaskWords& masks, const Each& each) {
    const auto list = parse_transforms(words);
    ASSERT_TRUE(list.is_ok()) << list.status().message();
    SampleCut cut{.frame = list->frame};
    cut.columns.targets = masks;
    const auto dataset =
        open_dataset(spec_of(dir_.path("data")), Split::kTrain, dir_.path("cache"), {}, cut);
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    const SampleShape& shape = (*dataset)->shape();
    auto reader =
        SampleReader::create(**dataset, words, (*dataset)->statistics(), ImageForm::kStored);
    ASSERT_TRUE(reader.is_ok()) << reader.status().message();
    auto augmenter = Augmenter::create(list->augment, shape, (*dataset)->statistics());
    ASSERT_TRUE(augmenter.is_ok()) << augmenter.status().message();
    SampleHand hand;
    hand.augmenter = std::move(augmenter).value();
    std::vector<std::byte> record(shape.record_bytes());
    for (uint64_t stream = 0; stream < kMaskStreams; ++stream) {
      ReadSample read{MaskPlane(shape.elements()), {}};
      int64_t label = 0;
      const Status status = reader->read(0, reinterpret_cast<std::byte*>(read.image.data()), &label,
                                         &hand, stream, {}, record.data());
      ASSERT_TRUE(status.is_ok()) << status.message();
      for (size_t f = 0; f < masks.size(); ++f) {
        const auto* bytes =
            reinterpret_cast<const uint8_t*>(record.data() + shape.fields->offset(f));
        read.masks.emplace_back(bytes, bytes + uint64_t{shape.height} * shape.width);
      }
      each(read, shape);
      if (HasFatalFailure()) return;
    }
  }

  TemporaryDirectory dir_;
};

// Where no pixel is mixed with another, the mask of an image by itself is the image.
TEST_F(MaskTransformTest, AnImageAsItsOwnMaskStaysTheImage) {
  const MaskPlane noise =
      plane([](uint32_t x, uint32_t y) { return (x * 37 + y * 101) * 13 >> 2; });
  put("images", mask_png(noise, kMaskWide, kMaskHigh));
  put("masks", mask_png(noise, kMaskWide, kMaskHigh));
  for (const MaskWords& words :
       {MaskWords{"flip"}, MaskWords{"flip_vertical"}, MaskWords{"pad_crop=20"},
        MaskWords{"random_crop=50"}, MaskWords{"center_crop=72"},
        MaskWords{"random_crop=64", "pad_crop=8", "flip", "flip_vertical"},
        MaskWords{"flip", "flip_vertical", "random_crop=40"}, MaskWords{"pad_crop=9", "flip"}}) {
    size_t different = 0;
    MaskPlane last;
    for_streams(words, {"masks"}, [&](const ReadSample& read, const SampleShape&) {
      ASSERT_EQ(read.image, read.masks[0]) << words.front();
      different += last != read.image ? 1 : 0;
      last = read.image;
    });
    EXPECT_GT(different, words.front() == "center_crop=72" ? 0U : kMaskStreams / 4);
  }
}

// The image's red and green tell where a pixel comes from, and so do two masks.
TEST_F(MaskTransformTest, WhereverAPixelComesFromItsMaskComesFrom) {
  std::vector<uint8_t> colours;
  for (uint32_t y = 0; y < kMaskHigh; ++y)
    for (uint32_t x = 0; x < kMaskWide; ++x)
      for (const uint32_t value : {2 * x, 2 * y, 200U})
        colours.push_back(static_cast<uint8_t>(value));
  put("images", png_of(colours, kMaskWide, kMaskHigh));
  put("xs", mask_png(plane([](uint32_t x, uint32_t) { return x; }), kMaskWide, kMaskHigh));
  put("ys", mask_png(plane([](uint32_t, uint32_t y) { return y; }), kMaskWide, kMaskHigh));
  put("there", mask_png(plane([](uint32_t, uint32_t) { return 255; }), kMaskWide, kMaskHigh));
  for (const MaskWords& words :
       {MaskWords{"random_resized_crop=64"}, MaskWords{"random_resized_crop=160", "flip"},
        MaskWords{"resize=100", "random_crop=90", "flip", "flip_vertical"},
        MaskWords{"resize=40", "random_crop=32"}, MaskWords{"rotate=180"},
        MaskWords{"random_crop=60", "rotate=30", "flip", "pad_crop=10"},
        MaskWords{"pad_crop=10", "flip_vertical", "rotate=45"}}) {
    size_t compared = 0;
    for_streams(
        words, {"xs", "ys", "there"}, [&](const ReadSample& read, const SampleShape& shape) {
          const size_t pixels = size_t{shape.height} * shape.width;
          for (size_t i = 0; i < pixels; ++i) {
            const int x = read.masks[0][i];
            const int y = read.masks[1][i];
            // Towards a border pixels are mixed with what is beyond, or with less on one side.
            const bool is_inside =
                x >= 4 && y >= 4 && x < int{kMaskWide} - 4 && y < int{kMaskHigh} - 4;
            if (read.masks[2][i] == 0 || !is_inside || read.image[2 * pixels + i] < 198) continue;
            ASSERT_LE(std::abs(read.image[i] - 2 * x), 5) << words.front() << " pixel " << i;
            ASSERT_LE(std::abs(read.image[pixels + i] - 2 * y), 5) << words.front();
            ++compared;
          }
        });
    EXPECT_GT(compared, kMaskStreams * 100) << words.front();
  }
}

TEST_F(MaskTransformTest, ColoursAndCutoutLeaveItAsItIs) {
  put("images", png_of(picture(kMaskWide, kMaskHigh), kMaskWide, kMaskHigh));
  put("masks",
      mask_png(plane([](uint32_t x, uint32_t y) { return x * 3 + y * 5; }), kMaskWide, kMaskHigh));
  std::vector<MaskPlane> plain;
  for_streams({"random_crop=60", "flip", "pad_crop=6", "rotate=20"}, {"masks"},
              [&](const ReadSample& read, const SampleShape&) { plain.push_back(read.masks[0]); });
  size_t i = 0;
  for_streams({"random_crop=60", "brightness=0.5", "flip", "contrast=0.5", "pad_crop=6", "hue=0.3",
               "rotate=20", "saturation=0.4", "cutout=30", "normalize"},
              {"masks"}, [&](const ReadSample& read, const SampleShape&) {
                ASSERT_EQ(read.masks[0], plain[i]) << i;
                ++i;
              });
  EXPECT_EQ(i, kMaskStreams);
}

// The transform neither draws nor rounds: what is outside is 0, and all other values are the
// mask's.
TEST_F(MaskTransformTest, NoValueIsMade) {
  put("images", png_of(picture(kMaskWide, kMaskHigh), kMaskWide, kMaskHigh));
  put("masks", mask_png(plane([](uint32_t x, uint32_t y) { return (x / 3 + y / 5) % 2 ? 255 : 7; }),
                        kMaskWide, kMaskHigh));
  for_streams({"random_resized_crop=50", "rotate=90", "pad_crop=20"}, {"masks"},
              [&](const ReadSample& read, const SampleShape&) {
                for (const uint8_t value : read.masks[0])
                  ASSERT_TRUE(value == 0 || value == 7 || value == 255) << int{value};
              });
}

}  // namespace
}  // namespace lockstep::data
