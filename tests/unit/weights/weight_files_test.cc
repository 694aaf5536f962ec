#include "worker/model/weights/weight_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "comm/base/hash.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/weights/weight_writer.h"

namespace lockstep {
namespace {

using testing::counting;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::weights_file;

class WeightFilesTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& content) {
    write_file(dir_.path(name), content);
    return dir_.path(name);
  }
  void put_shards() {
    put("a-1.safetensors", weights_file({{"a", counting({2}, 1)}}));
    put("a-2.safetensors", weights_file({{"b", counting({3}, 5)}}));
  }
  std::string put_index(const std::string& map) {
    return put("model.safetensors.index.json", R"({"metadata": {}, "weight_map": )" + map + "}");
  }
  Status refused(const std::string& path) {
    return WeightFiles::open(path, WeightSource::kInit).status();
  }

  TemporaryDirectory dir_;
};

TEST_F(WeightFilesTest, TheHashOfOneFileIsThatOfItsContent) {
  const std::string content = weights_file({{"a", counting({2, 2}, 1)}});
  const std::string path = put("w.safetensors", content);
  const std::string wanted = to_hex(sha256(content));
  EXPECT_EQ(hash_weight_files(path).value(), wanted);
  EXPECT_EQ(hash_weight_files(dir_.path()).value(), wanted);
  EXPECT_TRUE(check_weights_hash(path, wanted, wanted).is_ok());
  EXPECT_THAT(check_weights_hash(path, "aa", wanted), FailsWith(Code::kUsage, Names(path, "aa")));
}

// 640 is 80 02 in little-endian, as a pickle begins.
TEST_F(WeightFilesTest, TheLengthOfAHeaderIsNotTakenForAPickle) {
  const std::string content = weights_file({{"a", counting({2}, 1)}});
  const size_t header = content.size() - 2 * sizeof(float) - sizeof(uint64_t);
  const uint64_t length = 640;
  const std::string path =
      put("w.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof length) +
                               content.substr(sizeof length, header) +
                               std::string(length - header, ' ') +
                               content.substr(sizeof length + header));
  const auto files = WeightFiles::open(path, WeightSource::kInit);
  ASSERT_TRUE(files.is_ok()) << files.status().message();
  EXPECT_EQ(files->tensors().size(), 1u);
}

TEST_F(WeightFilesTest, ShardsAreFoundByTheirIndex) {
  put_shards();
  put_index(R"({"a": "a-1.safetensors", "b": "a-2.safetensors"})");
  const auto files = WeightFiles::open(dir_.path(), WeightSource::kInit);
  ASSERT_TRUE(files.is_ok()) << files.status().message();
  ASSERT_EQ(files->tensors().size(), 2u);
  EXPECT_EQ(files->tensors()[1].name, "b");
  EXPECT_EQ(files->tensors()[1].shape, std::vector<int64_t>{3});
  const std::string before = files->sha256().value();
  put("a-2.safetensors", weights_file({{"b", counting({3}, 6)}}));
  EXPECT_NE(hash_weight_files(dir_.path()).value(), before);
}

TEST_F(WeightFilesTest, TheHashOfShardsHasTheirNames) {
  put_shards();
  put_index(R"({"a": "a-1.safetensors", "b": "a-2.safetensors"})");
  const std::string before = hash_weight_files(dir_.path()).value();
  std::filesystem::rename(dir_.path("a-2.safetensors"), dir_.path("a-3.safetensors"));
  put_index(R"({"a": "a-1.safetensors", "b": "a-3.safetensors"})");
  EXPECT_NE(hash_weight_files(dir_.path()).value(), before);
}

TEST_F(WeightFilesTest, AnIndexThatIsWrongIsRefused) {
  put_shards();
  const auto expect_bad = [&](const std::string& map, const std::string& word) {
    const std::string path = put_index(map);
    EXPECT_THAT(refused(path), FailsWith(Code::kBadData, Names(path), Says(word)));
  };
  expect_bad(R"({"a": "a-2.safetensors", "b": "a-2.safetensors"})", "'a'");
  expect_bad(R"({"a": "../a-1.safetensors"})", "'a'");
  expect_bad(R"({"a": "/etc/passwd"})", "'a'");
  expect_bad(R"({"a": 7})", "'a'");
  expect_bad("{}", "no tensor");
  expect_bad("[]", "weight_map");
  expect_bad(std::string(100'000, '['), "weight_map");
  put_index(R"({"a": "gone.safetensors"})");
  EXPECT_THAT(refused(dir_.path()), FailsWith(Code::kNoInput, Names("gone.safetensors")));
  put("a-2.safetensors", weights_file({{"a", counting({3}, 5)}}));
  expect_bad(R"({"a": "a-1.safetensors", "b": "a-2.safetensors"})", "both");
}

TEST_F(WeightFilesTest, PicklesAreRefusedWithTheLineThatConverts) {
  const std::string path = put("resnet18.pth", std::string("PK\x03\x04", 4) + "data");
  EXPECT_THAT(refused(path),
              FailsWith(Code::kConfig, Names(path), Advises("torch.load", "resnet18.safetensors")));
  EXPECT_THAT(refused(dir_.path()), FailsWith(Code::kConfig, Names("resnet18.pth")));
  const std::string old = put("old.bin", std::string("\x80\x02}q", 4));
  EXPECT_THAT(refused(old), FailsWith(Code::kConfig, Names(old), Advises("torch.load")));
}

TEST_F(WeightFilesTest, WhatIsNoFileOfWeightsIsRefused) {
  EXPECT_THAT(refused(dir_.path("gone")), FailsWith(Code::kNoInput, Names(dir_.path("gone"))));
  EXPECT_THAT(refused(dir_.path()), FailsWith(Code::kNoInput, Names(dir_.path())));
  const std::string whole = weights_file({{"a", counting({8}, 1)}});
  for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    const std::string cut = put("cut.safetensors", whole.substr(0, bytes));
    EXPECT_THAT(refused(cut), FailsWith(Code::kBadData, Names(cut))) << bytes;
  }
  put("other.safetensors", whole);
  EXPECT_THAT(refused(dir_.path()), FailsWith(Code::kConfig, Names(dir_.path()), Says("2")));
}

TEST_F(WeightFilesTest, WhatARunWroteIsNotBlamedOnModelInit) {
  const auto refused_of_run = [](const std::string& path) {
    return WeightFiles::open(path, WeightSource::kRun).status();
  };
  const std::string cut = put("cut.safetensors", "cut");
  const std::string pickle = put("model.bin", std::string("\x80\x02}q", 4));
  for (const std::string& path : {dir_.path("gone"), cut, pickle, dir_.path()}) {
    EXPECT_THAT(refused_of_run(path).message(), HasSubstr(dir_.path()));
    EXPECT_THAT(refused_of_run(path).message(), Not(HasSubstr("model.init"))) << path;
  }
  EXPECT_THAT(refused_of_run(dir_.path("gone")),
              FailsWith(Code::kNoInput, Advises("another checkpoint")));
}

TEST_F(WeightFilesTest, AFileThatChangesIsNoticed) {
  const std::string path = put("w.safetensors", weights_file({{"a", counting({800}, 1)}}));
  const auto files = WeightFiles::open(path, WeightSource::kInit);
  ASSERT_TRUE(files.is_ok());
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(files->sha256(), FailsWith(Code::kBadData, Names(path)));
  EXPECT_THAT(files->unchanged(), FailsWith(Code::kBadData, Names(path)));
}

}  // namespace
}  // namespace lockstep
