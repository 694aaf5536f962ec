// A command that fails on a checkpoint that its run has deleted names the deletion as the cause.
#include "deploy/cli/export/find_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/fails_with.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

TEST(FindCheckpoint, ADeletedCheckpointIsTheCauseOfWhateverFailed) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/step-7";
  const Status raw(Code::kInternal, "cannot open " + path + "/model.safetensors");
  EXPECT_THAT(why_unusable(raw, path),
              FailsWith(Code::kNoInput, Names(path), Says("deleted"), Advises("last")));
  EXPECT_TRUE(why_unusable(Status::ok(), path).is_ok());
  std::filesystem::create_directory(path);
  EXPECT_EQ(why_unusable(raw, path), raw);
}

}  // namespace
}  // namespace lockstep
