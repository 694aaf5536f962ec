#include "deploy/cli/base/file_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Follower : public testing::Test {
 protected:
  void SetUp() override { path_ = root_ + "/log"; }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  TemporaryDirectory temporary_;
  std::string root_ = temporary_.path();
  std::string path_;
};

TEST_F(Follower, LinesComeOnceAndWholeEvenFromAFileThatAppearsLater) {
  FileFollower follower(path_);
  EXPECT_THAT(follower.new_lines(), IsEmpty());
  append("one\ntw");
  EXPECT_THAT(follower.new_lines(), ElementsAre("one"));
  append("o\n");
  EXPECT_THAT(follower.new_lines(), ElementsAre("two"));
  EXPECT_THAT(follower.new_lines(), IsEmpty());
}

TEST_F(Follower, WhatWasThereBeforeIsNotTold) {
  append("old\n");
  FileFollower follower(path_);
  append("new\n");
  EXPECT_THAT(follower.new_lines(), ElementsAre("new"));
}

TEST_F(Follower, AnUnfinishedLastLineComesWhenTheWriterIsGone) {
  FileFollower follower(path_);
  append("dying wor");
  EXPECT_THAT(follower.new_lines(), IsEmpty());
  EXPECT_THAT(follower.new_lines(50, true), ElementsAre("dying wor"));
}

TEST_F(Follower, AFloodIsTakenInPortionsAndControlBytesAreBlanked) {
  FileFollower follower(path_);
  append("a\x1b[2Jb\n" + std::string(40'000, 'x') + "\nend\n");
  EXPECT_THAT(follower.new_lines(1), ElementsAre("a [2Jb"));
  size_t bytes = 0;
  std::string last;
  for (int i = 0; i < 5; ++i)
    for (const std::string& line : follower.new_lines()) {
      bytes += line.size();
      last = line;
    }
  EXPECT_EQ(bytes, 40'003u);
  EXPECT_EQ(last, "end");
}

}  // namespace
}  // namespace lockstep
