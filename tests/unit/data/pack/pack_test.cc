#include "data/pack/pack.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <map>

#include "comm/base/descriptors.h"
#include "comm/run/job/data_formats.h"
#include "data/open/detect_format.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/samples/arrow_samples.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

class Pack : public testing::Test {
 protected:
  Result<PackReport> pack(const std::string& from, const PackOptions& options = {},
                          const std::string& to = "packed") {
    return pack_data(spec_of(dir_.path(from)), dir_.path(to), options, cache_.path(), {});
  }
  std::string failure(const std::string& from, const PackOptions& options = {}) {
    const auto report = pack(from, options);
    return report.is_ok() ? "no failure" : report.status().message();
  }
  Result<std::unique_ptr<Dataset>> open(const std::string& path, Split split = Split::kTrain) {
    const auto format = resolve_format(dir_.path(path), "auto");
    SampleCut cut{.block = 7, .vocab = 0};
    if (is_encoded_format(*format)) cut.frame = {CropKind::kRandomResized, 4, 0};
    return open_dataset(spec_of(dir_.path(path)), split, cache_.path(), {}, cut);
  }
  // About 1.5 MB of pixels, and a few for evaluation.
  void put_idx() {
    fs::create_directories(dir_.path("idx"));
    write_file(dir_.path("idx/train-images-idx3-ubyte"), some_images(1'500, 20, 50));
    write_file(dir_.path("idx/train-labels-idx1-ubyte"), some_labels(1'500));
    write_file(dir_.path("idx/t10k-images-idx3-ubyte"), some_images(30, 20, 50, 2));
    write_file(dir_.path("idx/t10k-labels-idx1-ubyte"), some_labels(30));
  }
  void put_classes() {
    for (const char* split : {"train", "val"}) {
      int i = 0;
      for (const char* name : {"pear", "apple", "plum"}) {
        const std::string below = "folder/" + std::string(split) + "/" + name;
        fs::create_directories(dir_.path(below));
        if (std::string(name) == "plum") continue;  // a class without a sample
        for (const char* file : {"red_file", "green_file", "blue_file"})
          write_file(dir_.path(below + "/" + std::to_string(i++) + ".png"), arrow_sample(file));
      }
    }
  }
  void put_tokens() {
    fs::create_directories(dir_.path("tokens"));
    for (const auto& [name, count] :
         {std::pair("a.bin", 700'001), std::pair("b.bin", 20), std::pair("c_val.bin", 50)}) {
      std::vector<uint16_t> tokens(static_cast<size_t>(count));
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint16_t>(i * 7 % 30'011);
      write_file(dir_.path("tokens/" + std::string(name)),
                 {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
    }
  }
  std::map<std::string, std::string> files(const std::string& below) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path(below)))
      if (entry.is_regular_file())
        all[fs::relative(entry.path(), dir_.path(below)).string()] = slurp(entry.path().string());
    return all;
  }
  TemporaryDirectory dir_;
  TemporaryDirectory cache_;
};

std::string bytes_of(const Dataset& dataset, uint64_t i) {
  if (dataset.is<StoredSamples>())
    return {reinterpret_cast<const char*>(stored_sample(dataset, i)),
            dataset.shape().stored_bytes()};
  std::vector<uint8_t> bytes;
  EXPECT_TRUE(read_encoded(dataset, i, bytes).is_ok());
  return {bytes.begin(), bytes.end()};
}

void expect_same(const Result<std::unique_ptr<Dataset>>& a,
                 const Result<std::unique_ptr<Dataset>>& b) {
  ASSERT_TRUE(a.is_ok()) << a.status().message();
  ASSERT_TRUE(b.is_ok()) << b.status().message();
  ASSERT_EQ((*a)->samples(), (*b)->samples());
  EXPECT_EQ((*a)->shape(), (*b)->shape());
  EXPECT_EQ((*a)->classes(), (*b)->classes());
  EXPECT_EQ((*a)->class_names(), (*b)->class_names());
  EXPECT_EQ((*a)->statistics(), (*b)->statistics());
  for (uint64_t i = 0; i < (*a)->samples(); ++i) {
    ASSERT_EQ(bytes_of(**a, i), bytes_of(**b, i)) << i;
    if ((*a)->shape().is_sequence()) continue;
    ASSERT_EQ(label_of(**a, i), label_of(**b, i)) << i;
  }
}

TEST_F(Pack, PixelsAndLabelsAreTheSameWhateverTheCompression) {
  put_idx();
  for (const char* compression : {"none", "zstd", "lz4"}) {
    const auto report = pack("idx", {compression, 1, 2}, compression);
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    ASSERT_EQ(report->splits.size(), 2U);
    EXPECT_EQ(report->splits[0].files, 2U);
    EXPECT_EQ(report->splits[0].units, 1'500U);
    EXPECT_EQ(*detect_format(dir_.path(compression)), "arrow");
    expect_same(open("idx"), open(compression));
    expect_same(open("idx", Split::kEval), open(compression, Split::kEval));
  }
  EXPECT_EQ((*open("zstd"))->fingerprint(), (*open("none"))->fingerprint());
}

TEST_F(Pack, RowsKeepEveryBitAndTheNamesOfTheirClasses) {
  fs::create_directories(dir_.path("table"));
  write_file(dir_.path("table/train.csv"), "a,label,b\n0.1,pear,3e-9\n-7,apple,0\n1e30,pear,2\n");
  write_file(dir_.path("table/test.csv"), "a,label,b\n5,pear,6\n");
  for (const char* compression : {"none", "zstd"}) {
    const auto report = pack("table", {compression, 1, 1}, compression);
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_EQ(*detect_format(dir_.path(compression)), "arrow");
    expect_same(open("table"), open(compression));
    expect_same(open("table", Split::kEval), open(compression, Split::kEval));
    EXPECT_EQ((*open(compression, Split::kEval))->class_names().size(), 2U);
    EXPECT_EQ((*open(compression))->column_names(), (std::vector<std::string>{"a", "b"}));
  }
}

TEST_F(Pack, TargetsAndWeightsOfATableBecomeColumns) {
  fs::create_directories(dir_.path("table"));
  write_file(dir_.path("table/train.csv"),
             "a,price,kind,w\n1,0.5,pear,1\n2,-3,apple,0.25\n3,7,pear,2\n");
  const ColumnNames columns{.targets = {"price", "kind"}, .weight = "w"};
  PackOptions options{"none", 1, 1};
  options.columns = columns;
  const auto report = pack("table", options, "packed");
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  const auto opened = [&](const std::string& name) {
    return open_dataset(spec_of(dir_.path(name)), Split::kTrain, dir_.path("cache"), {},
                        {.columns = columns})
        .value();
  };
  const auto table = opened("table");
  const auto packed = opened("packed");
  EXPECT_EQ(text_of(*packed->shape().fields), "price (float32), kind (class), w (float32)");
  EXPECT_EQ(*packed->shape().fields, *table->shape().fields);
  EXPECT_EQ(packed->class_names(), table->class_names());
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(label_of(*packed, i), label_of(*table, i));
    const auto record = [&](const Dataset& dataset) {
      std::vector<std::byte> bytes(dataset.shape().record_bytes());
      const auto fields = dataset.as<SampleFields>();
      const auto [from, number] = fields->at(i);
      EXPECT_TRUE(from.read_record(number, bytes.data()).is_ok());
      return bytes;
    };
    EXPECT_EQ(record(*packed), record(*table));
  }
}

TEST_F(Pack, EncodedImagesKeepTheirBytesAndTheNamesOfTheirClasses) {
  put_classes();
  for (const char* compression : {"none", "zstd"}) {
    const auto report = pack("folder", {compression, 1, 1}, compression);
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_EQ(*detect_format(dir_.path(compression)), "arrow_images");
    expect_same(open("folder"), open(compression));
    expect_same(open("folder", Split::kEval), open(compression, Split::kEval));
    EXPECT_EQ((*open(compression))->class_names()[2], "plum");
  }
}

// A run on either is therefore the same run, to the last bit.
TEST_F(Pack, TokensKeepTheirStreamsAndTheirFingerprint) {
  put_tokens();
  for (const char* compression : {"none", "lz4"}) {
    const auto report = pack("tokens", {compression, 1, 2}, compression);
    ASSERT_TRUE(report.is_ok()) << report.status().message();
    EXPECT_EQ(report->splits[0].files, 3U) << "two of the first stream";
    EXPECT_EQ(report->splits[0].units, 700'021U);
    EXPECT_EQ(*detect_format(dir_.path(compression)), "arrow_tokens");
    expect_same(open("tokens"), open(compression));
    expect_same(open("tokens", Split::kEval), open(compression, Split::kEval));
    EXPECT_EQ((*open("tokens"))->fingerprint(), (*open(compression))->fingerprint());
  }
}

TEST_F(Pack, WhatIsPackedCanBePackedAgain) {
  put_tokens();
  ASSERT_TRUE(pack("tokens", {"none", 1, 1}, "once").is_ok());
  const auto report = pack("once", {"zstd", 2, 1}, "twice");
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_same(open("tokens"), open("twice"));
}

TEST_F(Pack, ThreadsDoNotChangeAByte) {
  put_idx();
  ASSERT_TRUE(pack("idx", {"zstd", 1, 1}, "one").is_ok());
  ASSERT_TRUE(pack("idx", {"zstd", 1, 3}, "three").is_ok());
  EXPECT_EQ(files("one"), files("three"));
}

TEST_F(Pack, ASecondCallWritesWhatIsMissingAndNoMore) {
  put_idx();
  const PackOptions options{"none", 1, 2};
  ASSERT_TRUE(pack("idx", options).is_ok());
  const auto whole = files("packed");
  const std::string first = dir_.path("packed/train/data-00000-of-00002.arrow");
  const std::string second = dir_.path("packed/train/data-00001-of-00002.arrow");
  fs::remove(first);
  write_file(first + ".tmp", "what a killed process left");
  fs::resize_file(second, 5'000);
  const auto kept = fs::last_write_time(dir_.path("packed/val/data-00000-of-00001.arrow"));
  const auto report = pack("idx", options);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(report->splits[0].found, 0U);
  EXPECT_EQ(report->splits[1].found, 1U);
  EXPECT_EQ(files("packed"), whole);
  EXPECT_EQ(fs::last_write_time(dir_.path("packed/val/data-00000-of-00001.arrow")), kept);
  const auto none = pack("idx", options);
  EXPECT_EQ(none->written_bytes, 0U);
}

TEST_F(Pack, OtherDataOrSettingsAreRefused) {
  put_idx();
  ASSERT_TRUE(pack("idx", {"none", 1, 1}).is_ok());
  const auto before = files("packed");
  EXPECT_THAT(failure("idx", {"zstd", 1, 1}), Names("--compression", "\"none\""));
  EXPECT_THAT(failure("idx", {"none", 2, 1}), Names("--shard-mb", "(1)"));
  write_file(dir_.path("idx/train-labels-idx1-ubyte"), some_labels(1'500, 9));
  EXPECT_THAT(failure("idx", {"none", 1, 1}), Says("other data"));
  EXPECT_EQ(files("packed"), before);
  // This is no plan, and a parser that descends into it would use up its stack.
  constexpr size_t kDeep = 400'000;
  write_file(dir_.path("packed/pack.json"),
             "{\"compression\":" + std::string(kDeep, '[') + std::string(kDeep, ']') + "}");
  EXPECT_THAT(failure("idx", {"none", 1, 1}), Says("another --"));
  fs::remove(dir_.path("packed/pack.json"));
  EXPECT_THAT(failure("idx", {"none", 1, 1}), Says("not empty"));
}

TEST_F(Pack, OneProcessAtATimeWritesADirectory) {
  put_idx();
  fs::create_directories(dir_.path("packed"));
  const Descriptor held(::open(dir_.path("packed").c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  EXPECT_THAT(failure("idx"), Says("another", "writing"));
}

}  // namespace
}  // namespace lockstep::data
