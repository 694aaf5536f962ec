// Tests what every format has to stand, whatever its own tests look at: HOSTILE.md has the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/dataset/dataset.h"
#include "data/formats/shards/shards.h"
#include "data/loader/sample_reader.h"
#include "data/loader/verify.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/hostile_formats.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::AnyOf;
using testing::HasSubstr;

class EveryFormat : public testing::TestWithParam<HostileFormat> {
 protected:
  void SetUp() override { write(); }

  void write() {
    fs::remove_all(data_);
    fs::create_directories(data_);
    GetParam().write(data_);
  }
  std::string victim() const { return data_ + "/" + GetParam().victim; }
  // Returns the part of the file's name that messages say in any case.
  std::string victim_name() const {
    const std::string name = fs::path(victim()).filename().string();
    // An image is named by its place, a pair of files by either.
    return name.ends_with(".idx") || name.ends_with(".bin") ? name.substr(0, name.size() - 4)
                                                            : name;
  }
  static SampleCut cut() { return {.block = 4, .frame = frame(), .columns = GetParam().columns}; }
  static ImageFrame frame() { return {CropKind::kCenter, 4, 8}; }
  static bool is_encoded() {
    const std::string& format = GetParam().format;
    return format == "image_folder" || format == "webdataset" || format == "tfrecord" ||
           format == "mds" || format == "arrow_images";
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& directory) {
    SampleCut wanted = cut();
    if (!is_encoded()) wanted.frame = {};
    // Files are synced there, which takes most of the time of a test.
    const std::string cache = is_encoded() || GetParam().is_inflated ? cache_.path() : "";
    return open_dataset(spec_of(directory, GetParam().format), Split::kTrain, cache, {}, wanted);
  }
  static Result<SampleReader> reader_of(const Dataset& dataset) {
    std::vector<std::string> transforms;
    if (is_encoded()) transforms = {"resize=8", "center_crop=4"};
    return SampleReader::create(dataset, transforms, dataset.statistics());
  }
  // Reads every sample as training does.
  static Status read_all(const Dataset& dataset) {
    LOCKSTEP_ASSIGN_OR_RETURN(const SampleReader reader, reader_of(dataset));
    std::vector<std::byte> input(reader.input_bytes() * dataset.samples());
    std::vector<int64_t> labels(dataset.shape().label_words() * dataset.samples());
    return reader.read_range(0, dataset.samples(), input.data(), labels.data());
  }
  // All that training gets of them; empty if some of it cannot be read.
  static std::string bits_of(const Dataset& dataset) {
    const auto reader = reader_of(dataset);
    if (!reader.is_ok()) return "";
    std::string inputs(reader->input_bytes() * dataset.samples(), 0);
    std::vector<int64_t> labels(dataset.shape().label_words() * dataset.samples());
    const Status status = reader->read_range(
        0, dataset.samples(), reinterpret_cast<std::byte*>(inputs.data()), labels.data());
    if (!status.is_ok()) return "";
    for (const int64_t label : labels) inputs += "," + std::to_string(label);
    return inputs;
  }
  // Opens and reads the data as they lie there now. Returns the error, or "" without one.
  std::string said() {
    const auto dataset = open(data_);
    const Status status = dataset.is_ok() ? read_all(**dataset) : dataset.status();
    if (status.is_ok()) return "";
    EXPECT_NE(status.code(), Code::kInternal) << status.message();
    return status.message();
  }

  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
  const std::string data_ = dir_.path("data");
};

TEST_P(EveryFormat, IsGoodBeforeItIsDamaged) {
  EXPECT_EQ(said(), "");
}

// Nothing of a file that was cut off is trained on, but where its last bytes say nothing.
TEST_P(EveryFormat, ATruncatedFileIsRefusedByName) {
  if (!GetParam().says_its_size) return;  // any part of it is a file of the format
  const std::string good = slurp(victim());
  const std::string fingerprint = (*open(data_))->fingerprint();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{9}, good.size() / 4, good.size() / 2,
                             good.size() * 9 / 10, good.size() - 1}) {
    write_file(victim(), good.substr(0, bytes));
    const std::string message = said();
    if (message.empty()) {
      EXPECT_EQ((*open(data_))->fingerprint(), fingerprint) << bytes;
      EXPECT_GT(bytes, good.size() / 2);
      continue;
    }
    // A file without even its first bytes is no shard of the directory.
    EXPECT_THAT(message, HasSubstr(bytes < 16 ? data_ : victim_name())) << bytes;
  }
}

// Every byte of the beginning, where headers lie, and of the end, where a list of files may be: one
// of its bits is another, or all. The fuzzers try more.
TEST_P(EveryFormat, AHeaderThatLiesIsReadOrRefusedAndNothingElse) {
  const std::string good = slurp(victim());
  const size_t span = std::min<size_t>(good.size(), 80);
  for (size_t i = 0; i < 2 * span; ++i) {
    const size_t at = i < span ? i : good.size() - 1 - (i - span);
    std::string damaged = good;
    damaged[at] = static_cast<char>(good[at] ^ (i % 2 == 0 ? 0x01 : 0xff));
    write_file(victim(), damaged);
    (void)said();
  }
}

TEST_P(EveryFormat, AFileThatShrinksWhileItIsInUseIsNamed) {
  auto dataset = open(data_);
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  ASSERT_TRUE(read_all(**dataset).is_ok());
  const uint64_t bytes = fs::file_size(victim());
  for (const uint64_t left : {bytes - 1, bytes / 2, uint64_t{0}}) {
    fs::resize_file(victim(), left);
    const Status status = read_all(**dataset);
    // No reader reads the source of inflated data again, nor an index that was read once.
    const bool is_copied =
        GetParam().is_inflated || GetParam().victim == "index.json" || GetParam().victim == "x.idx";
    if (is_copied) {
      EXPECT_TRUE(status.is_ok()) << status.message();
      continue;
    }
    EXPECT_THAT(status, FailsWith(Code::kBadData, HasSubstr(victim_name())));
  }
}

// A byte at many places of the file, under an open data set and before the next opening.
TEST_P(EveryFormat, AFileThatIsRewrittenAndGetsItsOldTimeAgainIsNeverReadAsTheOldOne) {
  const std::string good = slurp(victim());
  const auto before = open(data_);
  ASSERT_TRUE(before.is_ok()) << before.status().message();
  const std::string bits = bits_of(**before);
  ASSERT_NE(bits, "");
  for (size_t place = 1; place < 8; ++place) {
    const auto at = static_cast<off_t>(good.size() * place / 8);
    const auto in_use = open(data_);
    const auto never_read = open(data_);
    ASSERT_TRUE(in_use.is_ok() && never_read.is_ok());
    ASSERT_EQ(bits_of(**in_use), bits);
    write_and_put_time_back(victim(), at, static_cast<char>(good[at] ^ 1));
    EXPECT_THAT(bits_of(**in_use), AnyOf("", bits)) << at;
    EXPECT_THAT(bits_of(**never_read), AnyOf("", bits)) << at;
    const auto after = open(data_);
    if (after.is_ok() && (*after)->fingerprint() == (*before)->fingerprint()) {
      EXPECT_THAT(bits_of(**after), AnyOf("", bits)) << at;
    }
    write_and_put_time_back(victim(), at, good[at]);
  }
  const auto again = open(data_);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ((*again)->fingerprint(), (*before)->fingerprint());
  EXPECT_EQ(bits_of(**again), bits);
}

// Each changes the time of the inode and no byte.
TEST_P(EveryFormat, AFileThatIsTouchedIsReadOn) {
  const std::string good = slurp(victim());
  const std::string other = dir_.path("other");
  const std::vector<std::function<void()>> touches = {
      [&] { ASSERT_EQ(::chmod(victim().c_str(), 0600), 0); },
      [&] { ASSERT_EQ(::chmod(victim().c_str(), 0600), 0); },
      [&] { fs::create_hard_link(victim(), other); },
      [&] { fs::remove(other); },
      [&] { fs::rename(victim(), other), fs::rename(other, victim()); },
      [&] { write_and_put_time_back(victim(), 0, good[0]); }};
  const auto before = open(data_);
  ASSERT_TRUE(before.is_ok()) << before.status().message();
  const std::string bits = bits_of(**before);
  for (size_t i = 0; i < touches.size(); ++i) {
    const auto never_read = open(data_);
    ASSERT_TRUE(never_read.is_ok()) << i << never_read.status().message();
    touches[i]();
    EXPECT_EQ(bits_of(**before), bits) << i;
    EXPECT_EQ(bits_of(**never_read), bits) << i;
    EXPECT_EQ((*never_read)->fingerprint(), (*before)->fingerprint()) << i;
  }
}

TEST_P(EveryFormat, AFileThatIsRemovedWhileItIsInUseIsReadToItsEndOrNamed) {
  const auto dataset = open(data_);
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  fs::remove(victim());
  const Status status = read_all(**dataset);
  if (!status.is_ok()) {
    EXPECT_THAT(status, FailsWith(Code::kBadData, HasSubstr(victim_name())));
  }
  EXPECT_TRUE(status.is_ok() || is_encoded()) << "what is mapped stays";
}

TEST_P(EveryFormat, NamesMayBeAnyBytes) {
  const std::string odd = dir_.path("d\xff\xfe\n");
  fs::rename(data_, odd);
  std::string name = GetParam().victim;
  if (!GetParam().renamed_ending.empty()) {
    name = "x\xc3\x28" + GetParam().renamed_ending;
    fs::rename(odd + "/" + GetParam().victim, odd + "/" + name);
  }
  const auto dataset = open(odd);
  ASSERT_TRUE(dataset.is_ok()) << dataset.status().message();
  EXPECT_TRUE(read_all(**dataset).is_ok());
  EXPECT_FALSE((*dataset)->name_of(0).empty());
  const auto seen = inspect_data(spec_of(odd, GetParam().format), cache_.path(), {},
                                 {.block = 4, .columns = GetParam().columns});
  ASSERT_TRUE(seen.is_ok()) << seen.status().message();
  EXPECT_THAT(to_json(*seen).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
              HasSubstr(seen->splits.front().fingerprint));
}

INSTANTIATE_TEST_SUITE_P(Hostile, EveryFormat, testing::ValuesIn(hostile_formats()),
                         [](const auto& tested) { return tested.param.name; });

// All formats of shards take an image through image_in_shard(), and a folder of images through what
// that calls.
TEST(EveryShard, AnImageOf100000By100000IsRefusedByName) {
  const std::string huge = png_saying(100'000, 100'000);
  const TemporaryDirectory dir;
  fs::create_directories(dir.path("folder/a"));
  write_file(dir.path("folder/a/huge.png"), huge);
  write_file(dir.path("x.tar"),
             tar_entry({"huge.png", huge}) + tar_entry({"huge.cls", "1"}) + kTarEnd);
  for (const auto& [path, name] : {std::pair<std::string, std::string>{"folder", "a/huge.png"},
                                   std::pair<std::string, std::string>{"x.tar", "x.tar"}}) {
    const auto dataset = open_dataset(spec_of(dir.path(path)), Split::kTrain, dir.path("cache"));
    EXPECT_THAT(dataset, FailsWith(Code::kBadData, HasSubstr(name), Says("100000 x 100000")));
  }
  EXPECT_THAT(image_in_shard(span_of(huge), 0, huge.size()).status().message(),
              Says("100000 x 100000"));
}

}  // namespace
}  // namespace lockstep::data
