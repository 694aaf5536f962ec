// Files that systems leave next to data change nothing, in any format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/base/hidden_names.h"
#include "data/formats/shards/webdataset.h"
#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/files.h"
#include "tests/support/tar_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/format_batches.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// macOS writes such a file next to each file on disks that know no attributes.
const std::string kAppleDouble =
    std::string("\0\5\x16\7\0\2\0\0", 8) + "Mac OS X" + std::string(200, '\0');

TEST(HiddenNames, AreThoseThatSystemsLeave) {
  for (const char* name : {".a", "._a.bin", ".DS_Store", "__MACOSX", "@eaDir", "Thumbs.db"})
    EXPECT_TRUE(is_hidden(name)) << name;
  for (const char* name : {".", "..", "a.b", "_a", "__init__", "macosx", "thumbs.db.bin"})
    EXPECT_FALSE(is_hidden(name)) << name;
  for (const char* path : {"__MACOSX/a.jpg", "a/._b.jpg", "./.cache/x", "a/@eaDir/b"})
    EXPECT_TRUE(lies_hidden(path)) << path;
  for (const char* path : {"./a.jpg", "a/b.c", "../a", ""}) EXPECT_FALSE(lies_hidden(path)) << path;
}

class BesideAFormat : public BatchesOfAFormat {};

TEST_P(BesideAFormat, HiddenFilesAndDirectoriesAreNoData) {
  const fs::path data = dir_.path("data");
  const bool had_eval = has_eval_files(data.string());
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(data))
    if (entry.is_regular_file()) files.push_back(entry.path());
  for (const fs::path& file : files) {
    const fs::path name = file.filename();
    write_file((file.parent_path() / ("._" + name.string())).string(), kAppleDouble);
    for (const char* hidden : {".ipynb_checkpoints", "__MACOSX", "@eaDir"}) {
      for (const fs::path& at : {file.parent_path() / hidden, data / hidden,
                                 data / hidden / file.parent_path().filename()}) {
        fs::create_directories(at);
        fs::copy_file(file, at / name, fs::copy_options::overwrite_existing);
      }
    }
    fs::copy_file(file, file.parent_path() / ("." + name.string()));
  }
  for (const char* name : {"Thumbs.db", "desktop.ini", ".DS_Store"})
    write_file((data / name).string(), kAppleDouble);

  const Format& format = every_format_by_name().at(GetParam());
  SampleCut cut = format.cut;
  if (format.has_tokenizer) cut.tokenizer = dir_.path("tokenizer");
  const auto now = open_dataset(spec_of(data.string(), format.name), Split::kTrain,
                                dir_.path("cache-of-all"), {}, cut);
  ASSERT_TRUE(now.is_ok()) << now.status().message();
  EXPECT_EQ((*now)->samples(), dataset_->samples());
  EXPECT_EQ((*now)->classes(), dataset_->classes());
  EXPECT_EQ((*now)->class_names(), dataset_->class_names());
  EXPECT_EQ((*now)->fingerprint(), dataset_->fingerprint());
  EXPECT_EQ(has_eval_files(data.string()), had_eval);
}

INSTANTIATE_TEST_SUITE_P(Formats, BesideAFormat, testing::ValuesIn(every_format_name()),
                         [](const auto& name) { return name.param; });

TEST(HiddenMembers, OfATarAreNoSamples) {
  const std::string jpeg = jpeg_picture(40, 50, 1);
  std::string archive;
  for (const char* place : {"./", "__MACOSX/", "a/.cache/"})
    archive += tar_entry({std::string(place) + "0.jpg", jpeg}) +
               tar_entry({std::string(place) + "0.cls", "1"});
  archive += tar_entry({"./._0.jpg", kAppleDouble});
  const auto samples = samples_of_tar(span_of(archive + kTarEnd));
  ASSERT_TRUE(samples.is_ok()) << samples.status().message();
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ(samples->front().offset, 512U);
}

}  // namespace
}  // namespace lockstep::data
