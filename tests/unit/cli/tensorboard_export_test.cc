#include "deploy/cli/watch/tensorboard_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/files.h"
#include "tests/support/long_run.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

// The export tells the first so many steps one by one.
constexpr Step kTold = 100'000;
constexpr Step kSteps = kIsSanitized ? 2'450 : kTold + 450;

// Counts the events of all files that have this tag.
size_t events(const std::string& directory, const std::string& tag) {
  size_t count = 0;
  for (const std::string& name : names_in(directory)) {
    const std::string bytes = slurp(directory + "/" + name);
    for (size_t at = 0; at + 12 <= bytes.size();) {
      uint64_t length = 0;  // a record: length, its checksum, data, their checksum
      std::memcpy(&length, bytes.data() + at, sizeof length);
      count += std::string_view(bytes).substr(at + 12, length).find(tag) != std::string::npos;
      at += 12 + length + 4;
    }
  }
  return count;
}

TEST(TensorboardExport, TellsEachOfTheFirstStepsThenMeansOfAHundredAndTheLastOnes) {
  TemporaryDirectory temporary;
  const std::string dir = temporary.path();
  coordinator::make_long_run(dir, kSteps);
  auto source = RunSource::open(dir);
  ASSERT_TRUE(source.is_ok()) << source.status().message();
  auto out = TensorboardExport::begin(*source);
  ASSERT_TRUE(out.is_ok()) << out.status().message();
  const Status status = out->update();
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(out->steps(), kSteps);
  EXPECT_EQ(events(out->directory(), "train/loss"), kIsSanitized ? kSteps : kTold + 4 + 50);
  EXPECT_EQ(events(out->directory(), "eval/accuracy"), kSteps / 10'000 + 1);
  // Without a thinned history, as an older Lockstep left it, each step is told.
  std::filesystem::remove(dir + "/history-thin.jsonl");
  auto whole = TensorboardExport::begin(*source);
  ASSERT_TRUE(whole->update().is_ok());
  EXPECT_EQ(events(whole->directory(), "train/loss"), kSteps);
}

}  // namespace
}  // namespace lockstep
