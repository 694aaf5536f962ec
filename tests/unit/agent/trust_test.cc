#include "comm/run/directory/trust.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "comm/run/directory/run_files.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 54'321;

class Trust : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(run_dir_, fs::perms{0755}); }

  std::string put(const std::string& name) {
    const std::string path = run_dir_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, "x");
    ::chmod(path.c_str(), 0644);
    return path;
  }
  void give_away(const std::string& path) {
    if (::lchown(path.c_str(), kStranger, kStranger) != 0)
      GTEST_SKIP() << "only root can give files to another user";
  }
  Status check() const { return check_trusted_run_dir(run_dir_); }

  TemporaryDirectory temporary_;
  const std::string run_dir_ = temporary_.path();
};

constexpr const char* kDeep[] = {"job.pb",
                                 "logs/coordinator.log.jsonl",
                                 "checkpoints/step-1/model.safetensors",
                                 "cache/shards/a/b/c/x.tar",
                                 "terms/2.db",
                                 "trace/rank-0.json"};

TEST_F(Trust, WhatOthersMayWriteIsFoundHoweverDeep) {
  for (const char* name : kDeep) {
    const std::string path = put(name);
    EXPECT_TRUE(check().is_ok()) << check().message();
    ::chmod(path.c_str(), 0666);
    EXPECT_THAT(check(), FailsWith(Code::kConfig, Names(path), Advises("go-w")));
    ::chmod(path.c_str(), 0644);
    const std::string parent = fs::path(path).parent_path();
    ::chmod(parent.c_str(), 0775);
    EXPECT_THAT(check(), FailsWith(Code::kConfig, Names(parent), Advises("go-w")));
    ::chmod(parent.c_str(), 0755);
  }
}

TEST_F(Trust, ModesDoNotCountWhereNobodyElseMayEnter) {
  ::chmod(put("checkpoints/step-1/model.safetensors").c_str(), 0666);
  ::chmod((run_dir_ + "/checkpoints").c_str(), 0700);
  EXPECT_TRUE(check().is_ok()) << check().message();
  ::chmod((run_dir_ + "/checkpoints").c_str(), 0755);
  ::chmod(run_dir_.c_str(), 0700);
  EXPECT_TRUE(check().is_ok()) << check().message();
}

TEST_F(Trust, WhatBelongsToAnotherIsFoundHoweverDeep) {
  ::chmod(run_dir_.c_str(), 0700);
  for (const char* name : kDeep) {
    const std::string path = put(name);
    give_away(path);
    if (IsSkipped()) return;
    EXPECT_THAT(check(),
                FailsWith(Code::kConfig, Names(path, std::to_string(kStranger)), Advises("chown")));
    fs::remove(path);
  }
}

TEST_F(Trust, ALinkCountsAsWhatItLeadsToAndOnlyInTheCacheMayThatBeAnothers) {
  TemporaryDirectory elsewhere;
  const std::string theirs = elsewhere.path("shard.tar");
  write_file(theirs, "data");
  give_away(theirs);
  if (IsSkipped()) return;
  fs::create_directories(run_dir_ + "/cache/shards");
  fs::create_symlink(theirs, run_dir_ + "/cache/shards/shard.tar");
  EXPECT_TRUE(check().is_ok()) << check().message();
  give_away(run_dir_ + "/cache/shards/shard.tar");
  EXPECT_THAT(check(), FailsWith(Code::kConfig, Names("cache/shards/shard.tar")));
  fs::remove(run_dir_ + "/cache/shards/shard.tar");
  fs::create_directories(run_dir_ + "/checkpoints");
  fs::create_symlink(theirs, run_dir_ + "/checkpoints/x");
  EXPECT_THAT(check(), FailsWith(Code::kConfig, Names("checkpoints/x")));
}

TEST_F(Trust, ADirectoryBehindALinkIsLookedAtOnce) {
  TemporaryDirectory scratch;
  ::chmod(scratch.path().c_str(), 0755);
  fs::create_directories(run_dir_ + "/checkpoints");
  fs::create_directory_symlink(run_dir_, run_dir_ + "/checkpoints/round");  // and round
  EXPECT_TRUE(check().is_ok()) << check().message();
  fs::create_directory_symlink(scratch.path(), run_dir_ + "/checkpoints/big");
  write_file(scratch.path("model"), "x");
  ::chmod(scratch.path("model").c_str(), 0666);
  EXPECT_THAT(check(), FailsWith(Code::kConfig, Names("checkpoints/big/model")));
}

TEST_F(Trust, AJobIsShownToAllAndReadForUseByItsOwnerAlone) {
  wire::JobSpec job;
  job.mutable_train()->set_slots(2);
  ASSERT_TRUE(write_job_spec(run_dir_, job).is_ok());
  put("checkpoints/step-1/model.safetensors");
  EXPECT_TRUE(read_job_spec(run_dir_).is_ok());
  ::chmod((run_dir_ + "/checkpoints/step-1").c_str(), 0777);
  EXPECT_THAT(read_job_spec(run_dir_).status(), FailsWith(Code::kConfig, Names("step-1")));
  EXPECT_THAT(read_run_inputs(run_dir_).status(), FailsWith(Code::kConfig, Names("step-1")));
  EXPECT_TRUE(job_spec_to_show(run_dir_).is_ok());
}

}  // namespace
}  // namespace lockstep
