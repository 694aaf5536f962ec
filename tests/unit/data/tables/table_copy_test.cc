#include "data/formats/tables/table_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "comm/base/hash.h"
#include "data/files/inflate_cache.h"
#include "data/formats/tables/csv_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using testing::SizeIs;

class TableCopy : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    fs::create_directories(dir_.path("data"));
    write_file(dir_.path("data/" + name), content);
  }
  Result<std::unique_ptr<Dataset>> open(uint64_t memory_bytes, const ColumnNames& columns = {},
                                        Split split = Split::kTrain) {
    return open_csv_dataset(dir_.path("data"), split, columns, {cache_, {}, memory_bytes});
  }
  std::vector<std::string> copies() const {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(cache_, error))
      if (entry.path().extension() == ".rows") found.push_back(entry.path());
    return found;
  }
  // Changes a copy and its checksum with it, as somebody may on purpose.
  void forge(const std::string& path, const std::string& from, const std::string& to) {
    std::string bytes = slurp(path);
    bytes.replace(bytes.find(from), from.size(), to);
    const size_t end = bytes.size() - 32;
    bytes.replace(end, 32, xxh3_hex(bytes.data(), end));
    write_file(path, bytes);
  }

  TemporaryDirectory dir_;
  const std::string cache_ = dir_.path("cache");
};

void expect_same(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.class_names(), b.class_names());
  EXPECT_EQ(a.column_names(), b.column_names());
  ASSERT_EQ(a.samples(), b.samples());
  ASSERT_EQ(a.shape().stored_bytes(), b.shape().stored_bytes());
  const auto fields = [](const Dataset& dataset, uint64_t i) {
    std::vector<std::byte> record(64);
    const auto place = dataset.as<SampleFields>()->at(i);
    EXPECT_TRUE(place.from.read_record(place.number, record.data()).is_ok());
    return record;
  };
  for (uint64_t i = 0; i < a.samples(); ++i) {
    EXPECT_EQ(std::memcmp(stored_sample(a, i), stored_sample(b, i), a.shape().stored_bytes()), 0);
    EXPECT_EQ(label_of(a, i), label_of(b, i));
    EXPECT_EQ(a.name_of(i), b.name_of(i));
    EXPECT_EQ(fields(a, i), fields(b, i));
  }
}

TEST_F(TableCopy, HasTheRowsThatMemoryWouldHave) {
  put("train_1.csv", "a,w,b,kind,price\n1,1,2,pear,7.5\n3,2,4,apple,8\n");
  put("train_2.csv", "a,w,b,kind,price\n\n5,0.5,6,fig,9\n7,1,8,pear,-1\n");
  put("test.csv", "a,w,b,kind,price\n1,1,1,fig,2\n");
  const ColumnNames label{.label = "kind"};
  const ColumnNames targets{.targets = {"price", "kind"}, .weight = "w"};
  const ColumnNames numbers{.inputs = {"b", "a"}, .targets = {"price"}};
  for (const ColumnNames& columns : {ColumnNames{}, label, targets, numbers}) {
    for (const Split split : {Split::kTrain, Split::kEval}) {
      if (columns.targets.empty() && columns.label.empty()) continue;  // words are no features
      const auto memory = open(kCsvBytes, columns, split);
      const auto copy = open(0, columns, split);
      ASSERT_TRUE(memory.is_ok()) << memory.status().message();
      ASSERT_TRUE(copy.is_ok()) << copy.status().message();
      expect_same(**memory, **copy);
    }
  }
}

TEST_F(TableCopy, IsMadeOnceAndAnewWhereATableIsAnother) {
  put("a.csv", "x,label\n1,0\n2,1\n");
  put("b.csv", "x,label\n3,0\n");
  ASSERT_TRUE(open(0).is_ok());
  ASSERT_THAT(copies(), SizeIs(1));
  const auto inode = [&] {
    struct stat info {};
    ::stat(copies().at(0).c_str(), &info);
    return info.st_ino;
  };
  const auto before = inode();
  ASSERT_TRUE(open(0).is_ok());
  EXPECT_EQ(inode(), before);
  // The second table, with its size and time.
  const std::string path = dir_.path("data/b.csv");
  const auto time = fs::last_write_time(path);
  put("b.csv", "x,label\n4,0\n");
  fs::last_write_time(path, time);
  const auto again = open(0);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  float value = 0;
  std::memcpy(&value, stored_sample(**again, 2), sizeof value);
  EXPECT_EQ(value, 4);
  // Damage is found by the checksum.
  std::string bytes = slurp(copies()[0]);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  write_file(copies()[0], bytes);
  EXPECT_EQ((*open(0))->fingerprint(), (*again)->fingerprint());
}

TEST_F(TableCopy, AFaultIsNamedWithItsOwnFileAndLeavesNoCopy) {
  put("a.csv", "x,label\n1,0\n2,1\n");
  put("b.csv", "x,label\n3,0\nnan,1\n");
  const auto dataset = open(0);
  EXPECT_THAT(dataset.status(),
              FailsWith(Code::kBadData, Names("data/b.csv", "line 3, column 1", "\"x\"")));
  EXPECT_THAT(dataset.status().message(), testing::Not(testing::HasSubstr("a.csv")));
  EXPECT_THAT(copies(), SizeIs(0));
}

TEST_F(TableCopy, WithoutACacheItIsSaidWhatToSet) {
  put("a.csv", "x,label\n1,0\n2,1\n");
  const auto dataset = open_csv_dataset(dir_.path("data"), Split::kTrain, {}, {"", {}, 0});
  EXPECT_THAT(dataset.status(),
              FailsWith(Code::kUsage, Names("data/a.csv"), Advises("data.cache_dir")));
}

TEST_F(TableCopy, WhatHasAChecksumAndIsNoTableIsRefused) {
  put("a.csv", "x,y1,label\n1,5,0\n2,6,1\n");
  const std::pair<const char*, const char*> changes[] = {
      {"\"rows\":2", "\"rows\":9"},
      {"\"rows\":2", "\"rows\":0"},
      {"\"features\":[0,1]", "\"features\":[0,9]"},
      {"\"features\":[0,1]", "\"features\":[0,0,"},
      {"\"label\":2", "\"label\":8"},
      {"\"first_rows\":[0]", "\"first_rows\":[1]"},
      {"\"weight\":18446744073709551615", "\"weight\":00000000000000000001"}};
  for (const auto& [from, to] : changes) {
    fs::remove_all(cache_);
    ASSERT_TRUE(open(0).is_ok());
    forge(copies().at(0), from, to);
    const auto dataset = open(0);
    EXPECT_THAT(dataset.status(),
                FailsWith(Code::kBadData, Names(copies().at(0)), Advises("remove")))
        << to;
  }
}

}  // namespace
}  // namespace lockstep::data
