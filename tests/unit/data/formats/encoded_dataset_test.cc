// Directories of images and tar shards as data sets: what they hold, in which order, and what is
// said when they are damaged or change.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "data/dataset/dataset.h"
#include "data/dataset/facts.h"
#include "data/formats/images/image_folder.h"
#include "data/loader/loader.h"
#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/image_writer.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ImageFrame kSmallFrame{CropKind::kRandomResized, 16, 0};

class EncodedImagesTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(fs::path(dir_.path("data/" + name)).parent_path());
    write_file(dir_.path("data/" + name), content);
  }

  // 12 images of 3 classes, no two alike, of several sizes.
  void put_folder(const std::string& below = "") {
    for (uint32_t i = 0; i < 12; ++i)
      put(below + std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".jpg",
          jpeg_picture(40 + i, 50 - i, i));
  }

  void put_shards() {
    for (uint32_t shard = 0; shard < 3; ++shard) {
      std::string archive;
      for (uint32_t i = 0; i < 4; ++i) {
        const std::string name = std::to_string(i);
        archive += tar_entry({name + ".jpg", jpeg_picture(40 + i, 50 - shard, 4 * shard + i)});
        archive += tar_entry({name + ".cls", std::to_string(i % 3)});
      }
      put("train-" + std::to_string(shard) + ".tar", archive + kTarEnd);
    }
  }

  Result<std::unique_ptr<Dataset>> open(const ImageFrame& frame = kSmallFrame,
                                        Split split = Split::kTrain) {
    return open_dataset(spec_of(dir_.path("data")), split, dir_.path("cache"), {},
                        {.frame = frame});
  }

  std::string failure(const ImageFrame& frame = kSmallFrame, Split split = Split::kTrain) {
    const auto dataset = open(frame, split);
    return dataset.is_ok() ? "no failure" : dataset.status().message();
  }

  // All batches of two epochs, one after another, as bytes.
  static std::vector<uint8_t> read_all(const Dataset& dataset, uint32_t threads, SlotRun slots,
                                       Step first = 0) {
    LoaderOptions options;
    options.shape = {.samples = dataset.samples(), .global_batch = 4, .slots = 2};
    options.order = {3, dataset.fingerprint(), dataset.samples()};
    options.first_step = first;
    options.end_step = 6;
    options.slots = slots;
    options.transforms = {"random_resized_crop=16", "flip", "normalize"};
    options.form = ImageForm::kStored;
    options.threads = threads;
    const auto loader = Loader::start(dataset, options);
    EXPECT_TRUE(loader.is_ok()) << loader.status().message();
    std::vector<uint8_t> seen;
    while (true) {
      const auto batch = (*loader)->next();
      EXPECT_TRUE(batch.is_ok()) << batch.status().message();
      if (!batch.is_ok() || *batch == nullptr) return seen;
      const Batch& b = **batch;
      seen.insert(seen.end(), b.stored, b.stored + b.samples * b.shape.elements());
      for (uint32_t i = 0; i < b.samples; ++i) seen.push_back(static_cast<uint8_t>(b.labels[i]));
    }
  }

  static std::vector<uint32_t> labels_of(const Dataset& dataset) {
    std::vector<uint32_t> labels;
    for (uint64_t i = 0; i < dataset.samples(); ++i) labels.push_back(label_of(dataset, i));
    return labels;
  }

  TemporaryDirectory dir_;
};

TEST_F(EncodedImagesTest, AFolderIsFoundByWhatIsInIt) {
  put_folder();
  put("a/.hidden.jpg", "no image");
  put("a/notes.txt", "no image either");
  put("b/deeper/still/99.PNG", image_sample("png_colours"));
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "image_folder");
  EXPECT_EQ((*dataset)->samples(), 13U);
  EXPECT_EQ((*dataset)->classes(), 3U);
  EXPECT_THAT((*dataset)->class_names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ((*dataset)->shape(), (SampleShape{3, 16, 16}));
  EXPECT_THAT(labels_of(**dataset), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_THAT((*dataset)->name_of(0), testing::EndsWith("/a/0.jpg"));
  EXPECT_THAT((*dataset)->name_of(8), testing::EndsWith("/b/deeper/still/99.PNG"));
  EXPECT_EQ((*dataset)->statistics().size(), 3U);
}

TEST_F(EncodedImagesTest, ShardsAreFoundByWhatIsInThem) {
  put_shards();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->format(), "webdataset");
  EXPECT_THAT(labels_of(**dataset), ElementsAre(0, 1, 2, 0, 0, 1, 2, 0, 0, 1, 2, 0));
  EXPECT_THAT((*dataset)->name_of(4), testing::EndsWith("train-1.tar at byte 512"));
  EXPECT_THAT(failure(kSmallFrame, Split::kEval),
              AllOf(Names("*.tar", "*.tar.gz"), Advises("val", "test")));
  fs::rename(dir_.path("data/train-2.tar"), dir_.path("data/val-0.tar"));
  EXPECT_EQ((*open())->samples(), 8U);
  EXPECT_EQ((*open(kSmallFrame, Split::kEval))->samples(), 4U);
  EXPECT_TRUE(has_eval_files(dir_.path("data")));
}

TEST_F(EncodedImagesTest, SplitsAreDirectories) {
  put_folder("train/");
  put("val/a/1.jpg", jpeg_picture(30, 30));
  EXPECT_TRUE(has_eval_files(dir_.path("data")));
  const auto train = open();
  const auto eval = open(kSmallFrame, Split::kEval);
  ASSERT_TRUE(train.is_ok() && eval.is_ok());
  EXPECT_EQ((*train)->samples(), 12U);
  EXPECT_EQ((*eval)->samples(), 1U);
  // Only `a` is there: `b` would be 1 in one and not in the other.
  EXPECT_THAT(check_eval_fits_train(**train, **eval).message(), Says("labels", "different"));
  fs::create_directory(dir_.path("data/val/b"));
  fs::create_directory(dir_.path("data/val/c"));
  EXPECT_TRUE(check_eval_fits_train(**train, **open(kSmallFrame, Split::kEval)).is_ok());
}

TEST_F(EncodedImagesTest, ImagesOfOneSizeNeedNoFrame) {
  for (const char* name : {"a/1.png", "b/2.png"}) put(name, image_sample("png_grey"));
  const auto dataset = open({});
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->shape(), (SampleShape{1, image_samples::kHeight, image_samples::kWidth}));
  put("b/3.jpg", jpeg_picture(50, 40));
  EXPECT_THAT(failure({}), AllOf(Says("41 x 31", "50 x 40"), HasSubstr("random_resized_crop=224")));
  EXPECT_EQ((*open())->shape().channels, 3U);  // one of colours makes all of colours
}

// The promise: the same bytes for any number of threads and workers, and after any resume.
TEST_F(EncodedImagesTest, BatchesDoNotDependOnThreadsSlotsOrWhereARunResumes) {
  for (const bool is_folder : {true, false}) {
    fs::remove_all(dir_.path("data"));
    is_folder ? put_folder() : put_shards();
    const auto dataset = open();
    ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
    const std::vector<uint8_t> all = read_all(**dataset, 1, {0, 2});
    ASSERT_EQ(all.size(), 24 * (3 * 16 * 16 + 1U));
    for (const uint32_t threads : {2U, 3U, 8U})
      EXPECT_EQ(read_all(**dataset, threads, {0, 2}), all) << threads;
    const size_t step = all.size() / 6;
    EXPECT_EQ(read_all(**dataset, 2, {0, 2}, 4),
              std::vector<uint8_t>(all.begin() + static_cast<ptrdiff_t>(4 * step), all.end()));
    const std::vector<uint8_t> second = read_all(**dataset, 3, {1, 2});
    ASSERT_EQ(second.size(), all.size() / 2);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_TRUE(std::equal(&second[i * step / 2], &second[i * step / 2] + step / 2,
                             &all[i * step + step / 2]));
  }
}

TEST_F(EncodedImagesTest, TheIndexIsMadeOnceAndUsedAsLongAsItHolds) {
  put_folder();
  const auto first = open();
  ASSERT_TRUE(first.is_ok());
  const auto index_files = [&] {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(dir_.path("cache")))
      if (entry.path().extension() == ".index") found.push_back(entry.path().string());
    return found;
  };
  ASSERT_EQ(index_files().size(), 1U);
  const std::string path = index_files()[0];
  const auto made = fs::last_write_time(path);
  EXPECT_EQ((*open())->fingerprint(), (*first)->fingerprint());
  EXPECT_EQ(fs::last_write_time(path), made);

  // An index with a damaged byte is made again, whichever byte it is.
  const std::string good = slurp(path);
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file(path, damaged);
    ASSERT_EQ((*open())->fingerprint(), (*first)->fingerprint()) << i;
    ASSERT_EQ(slurp(path), good) << "damage at byte " << i << " went unseen";
  }
  put("b/new.jpg", jpeg_picture(33, 33, 77));
  const auto more = open();
  EXPECT_EQ((*more)->samples(), 13U);
  EXPECT_NE((*more)->fingerprint(), (*first)->fingerprint());
}

TEST_F(EncodedImagesTest, TheFingerprintIsOfWhatIsThereAndNotOfWhereOrWhen) {
  put_folder();
  const std::string first = (*open())->fingerprint();
  fs::copy(dir_.path("data"), dir_.path("copy"), fs::copy_options::recursive);
  const auto of_copy = [&] {
    return (*open_dataset(spec_of(dir_.path("copy")), Split::kTrain, dir_.path("cache"), {},
                          {.frame = kSmallFrame}))
        ->fingerprint();
  };
  EXPECT_EQ(of_copy(), first);
  // A label, a name, a byte.
  fs::rename(dir_.path("copy/a/0.jpg"), dir_.path("copy/b/0.jpg"));
  EXPECT_NE(of_copy(), first);
  fs::rename(dir_.path("copy/b/0.jpg"), dir_.path("copy/a/00.jpg"));
  EXPECT_NE(of_copy(), first);
  fs::rename(dir_.path("copy/a/00.jpg"), dir_.path("copy/a/0.jpg"));
  EXPECT_EQ(of_copy(), first);
  std::string image = slurp(dir_.path("copy/a/0.jpg"));
  image[image.size() / 2] = static_cast<char>(image[image.size() / 2] ^ 1);
  fs::remove(dir_.path("copy/a/0.jpg"));
  write_file(dir_.path("copy/a/0.jpg"), image);
  EXPECT_NE(of_copy(), first);
}

TEST_F(EncodedImagesTest, AFileThatIsNoImageIsNamedAtOnce) {
  put_folder();
  put("b/broken.jpg", "this is text");
  EXPECT_THAT(failure(),
              AllOf(Names("b/broken.jpg"), Says("no JPEG"), Advises("repair", "remove it")));
  put("b/broken.jpg", "");
  EXPECT_THAT(failure(), AllOf(Names("b/broken.jpg"), Says("empty")));
}

TEST_F(EncodedImagesTest, NamesMayBeAnyBytes) {
  put("b\xff\xfe/x\xc3\x28.jpg", jpeg_picture(32, 32));
  put("a/1.jpg", jpeg_picture(32, 32, 2));
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_THAT(labels_of(**dataset), ElementsAre(0, 1));
  EXPECT_FALSE(read_all(**dataset, 2, {0, 2}).empty());
}

TEST_F(EncodedImagesTest, ALinkInACircleEnds) {
  put("a/1.jpg", jpeg_picture(32, 32));
  fs::create_directory_symlink("..", dir_.path("data/a/back"));
  EXPECT_THAT(failure(), Advises("link"));
}

TEST_F(EncodedImagesTest, AnEmptyDirectoryIsNoDataSet) {
  fs::create_directories(dir_.path("data/a"));
  auto spec = spec_of(dir_.path("data"));
  spec.set_format("image_folder");
  const auto dataset =
      open_dataset(spec, Split::kTrain, dir_.path("cache"), {}, {.frame = kSmallFrame});
  EXPECT_THAT(dataset.status().message(), Says("no images"));
}

class ChangedImages : public EncodedImagesTest {
 protected:
  // Returns what reading everything says after `change`.
  std::string after(const std::function<void()>& change) {
    const auto dataset = open();
    EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
    change();
    const auto reader =
        SampleReader::create(**dataset, {"random_resized_crop=16"}, (*dataset)->statistics());
    std::vector<std::byte> inputs((*dataset)->samples() * reader->input_bytes());
    std::vector<int64_t> labels((*dataset)->samples());
    const Status status =
        reader->read_range(0, (*dataset)->samples(), inputs.data(), labels.data());
    return status.is_ok() ? "no failure" : status.message();
  }
};

TEST_F(ChangedImages, AreNeverTrainedOn) {
  put_folder();
  const std::string path = dir_.path("data/b/4.jpg");
  const std::string good = slurp(path);
  EXPECT_EQ(after([] {}), "no failure");
  EXPECT_THAT(after([&] { fs::resize_file(path, good.size() / 2); }),
              AllOf(Names("b/4.jpg"), Says("cut off")));
  write_file(path, good);
  fs::remove_all(dir_.path("cache"));
  EXPECT_THAT(after([&] { write_file(path, good + "x"); }),
              AllOf(Names("b/4.jpg"), Says("written to")));
  write_file(path, good);
  fs::remove_all(dir_.path("cache"));
  EXPECT_THAT(after([&] {
                const timespec times[2] = {{0, UTIME_OMIT}, {1'000, 0}};
                EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
              }),
              AllOf(Names("b/4.jpg"), Says("written to")));
  EXPECT_THAT(after([&] { fs::remove(path); }), AllOf(Names("b/4.jpg"), Says("gone")));
}

TEST_F(ChangedImages, ThatGotTheirOldTimeAgainAreNamed) {
  put_folder();
  const std::string path = dir_.path("data/b/4.jpg");
  EXPECT_THAT(after([&] { write_and_put_time_back(path, 100, 7); }),
              AllOf(Names("b/4.jpg"), Says("got its old size and time again")));
}

// Their index lies in the cache, and tells sizes and times alone.
TEST_F(ChangedImages, BetweenTwoStartsMakeAnotherDataSet) {
  put_folder();
  const std::string path = dir_.path("data/b/4.jpg");
  const auto fingerprint = [&] { return (*open())->fingerprint(); };
  const std::string before = fingerprint();
  const std::string good = slurp(path);
  write_and_put_time_back(path, 100, 7);
  EXPECT_NE(fingerprint(), before);
  write_file(path, good);
  EXPECT_EQ(fingerprint(), before) << "and now its time is another one";
}

TEST_F(ChangedImages, OfAShardAreSeenThroughAFileThatIsOpen) {
  put_shards();
  const std::string path = dir_.path("data/train-1.tar");
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok());
  std::vector<uint8_t> bytes;
  ASSERT_TRUE(read_encoded(**dataset, 4, bytes).is_ok());
  fs::resize_file(path, 600);
  EXPECT_THAT(read_encoded(**dataset, 5, bytes).message(),
              AllOf(Names("train-1.tar"), Says("cut off")));
  EXPECT_TRUE(read_encoded(**dataset, 0, bytes).is_ok());
}

// Its size is told before the damage: only decoding finds it.
TEST_F(ChangedImages, DamageWithinAnImageNamesTheFile) {
  put_folder();
  std::string image = jpeg_picture(60, 60, 5);
  image.resize(image.size() * 2 / 3);
  put("c/short.jpg", image);
  EXPECT_THAT(failure(), AllOf(Names("c/short.jpg"), Says("decoded"), HasSubstr("Premature end")));
}

TEST_F(EncodedImagesTest, TheLoaderStopsInTheMiddleOfABatch) {
  put_folder();
  const auto dataset = open();
  ASSERT_TRUE(dataset.is_ok());
  for (int i = 0; i < 20; ++i) {
    LoaderOptions options;
    options.shape = {.samples = 12, .global_batch = 12, .slots = 1};
    options.order = {0, (*dataset)->fingerprint(), 12};
    options.end_step = 1'000;
    options.slots = {0, 1};
    options.transforms = {"random_resized_crop=16"};
    options.threads = 3;
    ASSERT_TRUE(Loader::start(**dataset, options).is_ok());  // and away with it
  }
}

TEST_F(EncodedImagesTest, InspectionCutsThemAsIsUsual) {
  put_folder();
  const auto inspection = inspect_data(spec_of(dir_.path("data")), dir_.path("cache"));
  ASSERT_TRUE(inspection.is_ok()) << inspection.status().message();
  EXPECT_THAT(to_text(*inspection), AllOf(HasSubstr("image_folder"), HasSubstr("3 x 224 x 224")));
}

}  // namespace
}  // namespace lockstep::data
