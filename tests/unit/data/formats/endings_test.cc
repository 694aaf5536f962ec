// Tests which files of a directory are data, by their endings and by the format that a job names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

struct OneFile {
  std::string format;
  std::string content;
  std::vector<std::string> names;  // as writers name such files
};

std::vector<OneFile> one_files() {
  return {
      {"tfrecord",
       tfrecord_sample("datasets"),
       {"flowers00-4.tfrec", "train.record", "A.TFRECORD", "x.TFRecords", "coco.records"}},
      {"webdataset", tar_of_images(), {"S.TAR", "train.Tar"}},
      {"webdataset", gzip_bytes(tar_of_images()), {"S.TAR.GZ", "s.TGZ"}},
      {"csv", "a,label\n1,0\n2,1\n", {"DATA.CSV", "Data.Tsv"}},
      {"text", "hello world", {"A.TXT", "b.Txt"}},
      {"tokens", std::string(100, 'x'), {"TRAIN.BIN"}},
      {"arrow_images", arrow_sample("encoded"), {"T.ARROW", "T.Feather"}},
      {"npz", npz_sample("mnist"), {"MNIST.NPZ"}},
      {"safetensors", safetensors_sample("mnist"), {"X.SafeTensors"}},
  };
}

class Endings : public testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> open(const std::string& path,
                                        const std::string& format = "auto") {
    const SampleCut cut{.block = 4, .vocab = 0, .frame = {CropKind::kCenter, 4, 8}};
    const bool has_images = format != "csv" && format != "text" && format != "tokens";
    SampleCut plain{.block = 4};
    return open_dataset(spec_of(path, format), Split::kTrain, dir_.path("cache"), {},
                        has_images ? cut : plain);
  }
  TemporaryDirectory dir_;
};

TEST_F(Endings, CountInAnyCase) {
  for (const OneFile& one : one_files()) {
    for (const std::string& name : one.names) {
      const TemporaryDirectory dir;
      write_file(dir.path(name), one.content);
      for (const std::string& path : {dir.path(), dir.path(name)}) {
        const auto format = detect_format(path);
        ASSERT_TRUE(format.is_ok()) << name << ": " << format.status().message();
        EXPECT_EQ(*format, one.format) << path;
        const auto opened = open(path, one.format);
        EXPECT_TRUE(opened.is_ok()) << path << ": " << opened.status().message();
      }
    }
  }
}

TEST_F(Endings, AFormatThatIsNamedTakesEveryFileThatIsNotHidden) {
  for (const OneFile& one : one_files()) {
    const bool is_gzip = one.content.starts_with("\x1f\x8b");  // known by its ending
    if (one.format == "npz" || one.format == "safetensors" || is_gzip) continue;
    const TemporaryDirectory dir;
    write_file(dir.path("part-r-00000"), one.content);
    write_file(dir.path(".part-r-00000.crc"), "x");
    const auto opened = open(dir.path(), one.format);
    ASSERT_TRUE(opened.is_ok()) << one.format << ": " << opened.status().message();
    const uint64_t samples = (*opened)->samples();
    EXPECT_EQ(open(dir.path("part-r-00000"), one.format).value()->samples(), samples);
    if (one.format == "text" || one.format == "tokens") continue;
    write_file(dir.path("part-r-00001"), one.content);
    EXPECT_EQ(open(dir.path(), one.format).value()->samples(), 2 * samples) << one.format;
  }
}

TEST_F(Endings, OfAnEmptyDirectoryNothingIsSaidOfEvaluation) {
  const TemporaryDirectory dir;
  for (const char* format : {"tfrecord", "csv", "webdataset", "arrow_images"}) {
    const Status status = open(dir.path(), format).status();
    EXPECT_EQ(status.code(), Code::kNoInput) << format;
    EXPECT_THAT(status.message(), testing::Not(testing::HasSubstr("evaluation"))) << format;
  }
}

TEST_F(Endings, EmptyFilesOfTextAndTokensArePassedOver) {
  for (const char* ending : {".txt", ".bin"}) {
    const TemporaryDirectory dir;
    write_file(dir.path(std::string("a") + ending), std::string(600, 'x'));
    const auto alone = open(dir.path(), ending == std::string(".txt") ? "text" : "tokens");
    write_file(dir.path(std::string("b") + ending), "");
    const auto both = open(dir.path(), ending == std::string(".txt") ? "text" : "tokens");
    ASSERT_TRUE(both.is_ok()) << both.status().message();
    EXPECT_EQ((*both)->fingerprint(), (*alone)->fingerprint());
    fs::remove(dir.path(std::string("a") + ending));
    EXPECT_FALSE(open(dir.path(), ending == std::string(".txt") ? "text" : "tokens").is_ok());
  }
}

}  // namespace
}  // namespace lockstep::data
