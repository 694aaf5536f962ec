// The terminal shows what workers have to say.
#include "deploy/cli/run/shown_notes.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "comm/run/directory/layout.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ShownNotes : public ::testing::Test {
 protected:
  ShownNotes() { std::filesystem::create_directories(dir_.path() + "/logs"); }
  void append(const char* name, const std::string& text) const {
    std::ofstream(rundir::log_in(dir_.path(), name), std::ios::app) << text;
  }
  TemporaryDirectory dir_;
};

TEST_F(ShownNotes, EachLineIsShownOnceAndWhenItIsWhole) {
  WorkerNotes notes(dir_.path());
  EXPECT_THAT(notes.news(), IsEmpty());
  append(rundir::kModelNotes, "a\n");
  append(rundir::kWaits, "b\nc");
  EXPECT_THAT(notes.news(), ElementsAre("note: a", "note: b"));
  EXPECT_THAT(notes.news(), IsEmpty());
  append(rundir::kWaits, "d\n");
  EXPECT_THAT(notes.news(), ElementsAre("note: cd"));
}

TEST_F(ShownNotes, WhatWasSaidInAnEarlierStartIsOld) {
  append(rundir::kWaits, "old\n");
  WorkerNotes notes(dir_.path());
  EXPECT_THAT(notes.news(), IsEmpty());
  append(rundir::kWaits, "new\n");
  EXPECT_THAT(notes.news(), ElementsAre("note: new"));
}

TEST_F(ShownNotes, ManyLinesAreCutAndTheFileIsNamed) {
  WorkerNotes notes(dir_.path());
  for (int i = 0; i < 20; ++i) append(rundir::kWaits, "x\n");
  const auto lines = notes.news();
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_THAT(lines.back(), HasSubstr(rundir::kWaits));
  append(rundir::kWaits, "y\n");
  EXPECT_THAT(notes.news(), IsEmpty());
}

}  // namespace
}  // namespace lockstep
