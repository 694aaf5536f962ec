#include "deploy/preflight/directory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/support/temporary_directory.h"

namespace lockstep::preflight {
namespace {

using ::testing::HasSubstr;

class DirectoryCheck : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  std::string folder_ = temporary_.path();
};

TEST_F(DirectoryCheck, AnOrdinaryDirectoryIsGoodAndNothingIsLeftInIt) {
  const Finding finding = check_operations(folder_, "try-0");
  EXPECT_EQ(finding.grade, Grade::kGood) << finding.text;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(DirectoryCheck, WhatCannotBeWrittenIsNamed) {
  const Finding finding = check_operations("/proc/self", "try-0");
  EXPECT_EQ(finding.grade, Grade::kBad);
  EXPECT_THAT(finding.text, HasSubstr("/proc/self/try-0.file"));
}

TEST_F(DirectoryCheck, ALockThatIsHeldIsSeenAndOneThatIsNotIsSaid) {
  const std::string path = folder_ + "/lock";
  {
    const auto lock = HeldLock::take(path);
    ASSERT_TRUE(lock.is_ok()) << lock.status().message();
    EXPECT_EQ(check_lock_is_seen(path).grade, Grade::kGood);
  }
  const Finding unseen = check_lock_is_seen(path);
  EXPECT_EQ(unseen.grade, Grade::kBad);
  EXPECT_THAT(unseen.text, HasSubstr("nolock"));
}

}  // namespace
}  // namespace lockstep::preflight
