#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "comm/base/file.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/checkpoint/weights_hash.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/run/checkpoint/test_state.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::manifest_of;
using testing::TestState;

class CheckpointStore : public ::testing::Test {
 protected:
  CheckpointInfo write(Step step, unsigned number) {
    TestState state = TestState::small(number);
    auto info = write_checkpoint(*files_, dir_, state.tensors(), manifest_of(step));
    EXPECT_TRUE(info.is_ok()) << info.status().message();
    return *info;
  }

  TemporaryDirectory temporary_;
  std::string dir_ = temporary_.path() + "/checkpoints";
  std::unique_ptr<FileOps> files_ = posix_file_ops();
};

TEST(CheckpointName, HasOneTextForEachName) {
  EXPECT_EQ(checkpoint_name({1500, 2, 4}), "step-0000001500-g2-m4");
  EXPECT_EQ(parse_checkpoint_name("step-0000001500-g2-m4"), (CheckpointName{1500, 2, 4}));
  EXPECT_EQ(parse_checkpoint_name(checkpoint_name({12345678901, 0, 7})),
            (CheckpointName{12345678901, 0, 7}));
  EXPECT_EQ(checkpoint_name({1500, 2, 4, true}), "step-0000001500-g2-m4-edge");
  EXPECT_EQ(parse_checkpoint_name("step-0000001500-g2-m4-edge"),
            (CheckpointName{1500, 2, 4, true}));
  EXPECT_TRUE(is_after_edge("step-0000001500-g2-m4-edge"));
  EXPECT_FALSE(is_after_edge("step-0000001500-g2-m4"));
  for (const char* text :
       {"", "step-1500-g2-m4", "step-0000001500-g02-m4", "step-0000001500-g2-m4x",
        "tmp-step-0000001500-g2-m4", "step-00000001500-g2-m4", "step-0000001500-g-m4",
        "step-99999999999999999999-g1-m1", "step-0000001500-g2-m4-edg",
        "step-0000001500-g2-m4-edge-edge"})
    EXPECT_FALSE(parse_checkpoint_name(text)) << text;
}

TEST_F(CheckpointStore, VerifyingShowsThatItLivesWithEveryTensorItReadsAndHashes) {
  const CheckpointInfo info = write(1500, 1);
  size_t shown = 0;
  ASSERT_TRUE(verify_checkpoint(info.path, [&shown] { ++shown; }).is_ok());
  const size_t files = 2;
  const size_t tensors = 5;
  EXPECT_GE(shown, files + tensors);  // in order, and by names
}

TEST_F(CheckpointStore, WhatWasWrittenVerifiesAndLoadsBack) {
  const CheckpointInfo info = write(1500, 1);
  EXPECT_THAT(names_in(info.path),
              ElementsAre("manifest.json", "model.safetensors", "optimizer.safetensors"));
  const auto verified = verify_checkpoint(info.path);
  ASSERT_TRUE(verified.is_ok()) << verified.status().message();
  EXPECT_EQ(verified->manifest_sha256, info.manifest_sha256);

  TestState expected = TestState::small(1);
  TestState state = TestState::small(2);
  ASSERT_TRUE(load_checkpoint(info.path, state.tensors()).is_ok());
  EXPECT_EQ(weights_hash(state.tensors(), true), weights_hash(expected.tensors(), true));
  EXPECT_EQ(*hash_checkpoint(info.path, false), weights_hash(expected.tensors(), false));
  EXPECT_EQ(*hash_checkpoint(info.path, true), weights_hash(expected.tensors(), true));
  EXPECT_EQ(*hash_checkpoint(info.path + "/", true), info.manifest.state_sha256);
}

TEST_F(CheckpointStore, EveryDamagedByteOfEveryFileIsFound) {
  const CheckpointInfo info = write(1500, 1);
  for (const std::string& name : names_in(info.path)) {
    const std::string path = info.path + "/" + name;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const size_t size = std::filesystem::file_size(path);
    // The last byte of the manifest is a newline after the JSON and means nothing.
    constexpr size_t kStride = kIsSanitized ? 7 : 1;
    for (size_t i = 0; i + 1 < size; i += kStride) {
      file.seekg(static_cast<std::streamoff>(i));
      const char byte = static_cast<char>(file.get());
      const auto put = [&](char c) {
        file.seekp(static_cast<std::streamoff>(i));
        file.put(c).flush();
      };
      put(static_cast<char>(byte ^ 4));
      EXPECT_FALSE(verify_checkpoint(info.path).is_ok()) << name << " byte " << i;
      TestState state = TestState::small(2);
      EXPECT_FALSE(load_checkpoint(info.path, state.tensors()).is_ok()) << name << " byte " << i;
      put(byte);
    }
  }
  EXPECT_TRUE(verify_checkpoint(info.path).is_ok());
}

// In a state of one dtype the tensors lie in the order of their names, which verify reads in one
// pass.
TEST_F(CheckpointStore, AFlippedByteOfAStateOfOneDtypeIsFound) {
  TestState state;
  state.add(StateSection::kParameter, "fc.weight", DType::kF32, {3, 5});
  state.add(StateSection::kParameter, "fc.bias", DType::kF32, {3});
  state.fill(1);
  const auto info = write_checkpoint(*files_, dir_, state.tensors(), manifest_of(1500));
  ASSERT_TRUE(info.is_ok());
  EXPECT_TRUE(verify_checkpoint(info->path).is_ok());
  EXPECT_EQ(*hash_checkpoint(info->path, true), weights_hash(state.tensors(), true));
  EXPECT_EQ(*hash_checkpoint(info->path, false), info->manifest.weights_sha256);
  const std::string path = info->path + "/" + kModelFile;
  const auto size = std::filesystem::file_size(path);
  for (uintmax_t i = 0; i < size; ++i) {
    const auto flip = [&] {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(i));
      const char byte = static_cast<char>(file.get());
      file.seekp(static_cast<std::streamoff>(i));
      file.put(static_cast<char>(byte ^ 1));
    };
    flip();
    EXPECT_FALSE(verify_checkpoint(info->path).is_ok()) << "byte " << i;
    EXPECT_FALSE(load_checkpoint(info->path, state.tensors()).is_ok()) << "byte " << i;
    flip();
  }
}

// A writer whose memory was wrong leaves whole files that hold other weights.
TEST_F(CheckpointStore, AManifestWithTheHashOfOtherWeightsIsFound) {
  CheckpointInfo info = write(1500, 1);
  const auto is_found = [&](auto change) {
    Manifest manifest = info.manifest;
    change(manifest);
    std::ofstream(info.path + "/manifest.json") << manifest_to_json(manifest);
    return !verify_checkpoint(info.path).is_ok();
  };
  EXPECT_FALSE(is_found([](Manifest&) {}));
  EXPECT_TRUE(is_found([](Manifest& m) { m.weights_sha256 = std::string(64, 'a'); }));
  EXPECT_TRUE(is_found([](Manifest& m) { m.state_sha256 = std::string(64, 'a'); }));
}

TEST_F(CheckpointStore, AShortenedLongerOrMissingFileIsFound) {
  const CheckpointInfo info = write(1500, 1);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = info.path + "/" + name;
    const auto size = std::filesystem::file_size(path);
    for (const auto other : {uintmax_t{0}, size - 1, size + 1}) {
      std::filesystem::copy_file(path, path + ".good",
                                 std::filesystem::copy_options::overwrite_existing);
      std::filesystem::resize_file(path, other);
      const auto status = verify_checkpoint(info.path).status();
      EXPECT_THAT(status, FailsWith(Code::kBadData, HasSubstr(name)));
      std::filesystem::rename(path + ".good", path);
    }
    std::filesystem::rename(path, path + ".away");
    EXPECT_EQ(verify_checkpoint(info.path).status().code(), Code::kBadData);
    std::filesystem::rename(path + ".away", path);
  }
  std::filesystem::remove(info.path + "/manifest.json");
  EXPECT_EQ(verify_checkpoint(info.path).status().code(), Code::kNoInput);
}

TEST_F(CheckpointStore, AFileInThePlaceOfItsDirectoryIsDamage) {
  const CheckpointInfo info = write(100, 1);
  std::filesystem::remove_all(info.path);
  ASSERT_TRUE(replace_file(info.path, "no directory").is_ok());
  EXPECT_THAT(verify_checkpoint(info.path).status(),
              FailsWith(Code::kBadData, HasSubstr("not a directory")));
}

TEST_F(CheckpointStore, AnotherCheckpointsManifestIsFound) {
  const CheckpointInfo a = write(100, 1);
  const CheckpointInfo b = write(200, 1);
  std::filesystem::copy_file(a.path + "/manifest.json", b.path + "/manifest.json",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(verify_checkpoint(b.path).status().message(), HasSubstr("another checkpoint"));
}

TEST_F(CheckpointStore, AStateOfAnotherModelIsRefusedByName) {
  const CheckpointInfo info = write(1500, 1);
  const auto load_into = [&](auto change) {
    TestState state = TestState::small(2);
    change(state);
    return load_checkpoint(info.path, state.tensors()).status().message();
  };
  EXPECT_THAT(load_into([](TestState& s) {
                s.tensors()[0].shape = {5, 3};
              }),
              AllOf(Names("'fc.weight'"), Says("F32[3, 5]", "F32[5, 3]")));
  EXPECT_THAT(load_into([](TestState& s) { s.tensors()[2].dtype = DType::kF64; }),
              HasSubstr("'bn.batches'"));
  EXPECT_THAT(load_into([](TestState& s) { s.tensors().pop_back(); }),
              AllOf(Names("'exp_avg.fc.weight'"), Says("belong")));
  EXPECT_THAT(
      load_into([](TestState& s) { s.add(StateSection::kParameter, "new", DType::kF32, {1}); }),
      AllOf(Names("'new'"), Says("lacks")));
}

TEST_F(CheckpointStore, TheSameStateAgainIsNotWrittenTwiceAndAnotherIsRefused) {
  const CheckpointInfo first = write(1500, 1);
  EXPECT_EQ(write(1500, 1).manifest_sha256, first.manifest_sha256);
  TestState other = TestState::small(2);
  const auto refused = write_checkpoint(*files_, dir_, other.tensors(), manifest_of(1500));
  EXPECT_THAT(refused.status().message(), Says("another state"));
  EXPECT_TRUE(verify_checkpoint(first.path).is_ok());
}

// The journal has its manifest's hash: another one in its place would not count.
TEST_F(CheckpointStore, ADamagedOneIsNotWrittenOverAndTheErrorSaysWhatIsWrong) {
  const CheckpointInfo first = write(1500, 1);
  std::ofstream(first.path + "/model.safetensors", std::ios::app) << "more";
  const auto refused =
      write_checkpoint(*files_, dir_, TestState::small(1).tensors(), manifest_of(1500));
  EXPECT_THAT(refused.status(),
              FailsWith(Code::kInternal, AllOf(HasSubstr(first.path), HasSubstr("cannot be used"),
                                               HasSubstr("model.safetensors"),
                                               ::testing::Not(HasSubstr("another state")))));
}

TEST_F(CheckpointStore, TheListIsSortedAndShowsADamagedOneBesideTheOthers) {
  EXPECT_TRUE(list_checkpoints(dir_)->empty());
  write(200, 1);
  write(100, 1);
  write(12'345'678'901, 1);
  std::ofstream(dir_ + "/step-0000000200-g1-m1/manifest.json") << "{";
  std::filesystem::create_directories(dir_ + "/tmp-step-0000000300-g1-m1");
  std::filesystem::create_directories(dir_ + "/mine");
  const auto list = list_checkpoints(dir_);
  ASSERT_TRUE(list.is_ok());
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].name.step, 100u);
  EXPECT_TRUE((*list)[0].status.is_ok());
  EXPECT_EQ((*list)[1].status.code(), Code::kBadData);
  EXPECT_EQ((*list)[2].name.step, 12'345'678'901u);
}

TEST_F(CheckpointStore, OnlyNamedOnesAreDeletedAndNeverTheNewest) {
  for (const Step step : {100, 200, 300, 400}) write(step, 1);
  const auto name = [](Step step) { return checkpoint_name({step, 1, 1}); };
  const std::vector<std::string> drop = {name(100), name(300), name(400), name(999), "../../x", ""};
  const auto deleted = prune_checkpoints(*files_, dir_, drop, 1);  // 1 is raised to 2
  ASSERT_TRUE(deleted.is_ok());
  EXPECT_EQ(*deleted, 1);
  EXPECT_THAT(names_in(dir_), ElementsAre(name(200), name(300), name(400)));
}

TEST_F(CheckpointStore, ADamagedNewestDoesNotCountAsOneThatIsKept) {
  for (const Step step : {100, 200, 300}) write(step, 1);
  std::filesystem::remove(dir_ + "/step-0000000300-g1-m1/manifest.json");
  const std::vector<std::string> drop = {checkpoint_name({100, 1, 1})};
  EXPECT_EQ(*prune_checkpoints(*files_, dir_, drop, 2), 0);
}

TEST_F(CheckpointStore, LeftoversOfACrashGoAndNothingElse) {
  write(100, 1);
  std::filesystem::create_directories(dir_ + "/tmp-step-0000000200-g1-m1");
  std::ofstream(dir_ + "/tmp-step-0000000200-g1-m1/model.safetensors") << "half";
  std::filesystem::create_directories(dir_ + "/tmp-mine");
  ASSERT_TRUE(remove_leftovers(*files_, dir_).is_ok());
  EXPECT_THAT(names_in(dir_), ElementsAre("step-0000000100-g1-m1", "tmp-mine"));
}

// A writer that slept through a generation wakes up and cleans up while its successor writes.
TEST_F(CheckpointStore, ALateCleanUpLeavesTheWorkOfItsOwnAndOfNewerGenerations) {
  for (const char* name :
       {"tmp-step-0000000200-g2-m1", "tmp-step-0000000200-g3-m1", "tmp-step-0000000200-g4-m2"})
    std::filesystem::create_directories(dir_ + "/" + name);
  ASSERT_TRUE(remove_leftovers(*files_, dir_, 3).is_ok());
  EXPECT_THAT(names_in(dir_),
              ElementsAre("tmp-step-0000000200-g3-m1", "tmp-step-0000000200-g4-m2"));
}

}  // namespace
}  // namespace lockstep
