#include "deploy/agent/run_files.h"

#include <gtest/gtest.h>

#include "comm/base/file.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {
namespace {

class RunFiles : public testing::Test {
 protected:
  Code code_for(const std::string& coordinator_json) {
    EXPECT_TRUE(replace_file(directory_ + "/coordinator.json", coordinator_json).is_ok());
    return read_coordinator_file(directory_).status().code();
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
};

TEST_F(RunFiles, TheCoordinatorsAddressesAreRead) {
  ASSERT_EQ(code_for(R"({"pid": 7, "control": "127.0.0.1:4000", "http": "127.0.0.1:4001"})"),
            Code::kOk);
  const auto file = read_coordinator_file(directory_);
  EXPECT_EQ(file->pid, 7);
  EXPECT_EQ(file->control.port, 4000);
  EXPECT_EQ(file->http.port, 4001);
}

TEST_F(RunFiles, AnAbsentOrDamagedFileIsToldApart) {
  EXPECT_EQ(read_coordinator_file(directory_).status().code(), Code::kNoInput);
  for (const char* text : {"", "{", "[]", "7", R"({"pid": "x"})", R"({"pid": 7})",
                           R"({"pid": 7, "control": 5, "http": "127.0.0.1:1"})"})
    EXPECT_EQ(code_for(text), Code::kBadData) << text;
}

TEST_F(RunFiles, TheJobComesBackAsItWasWritten) {
  wire::JobSpec job;
  job.set_seed(42);
  ASSERT_TRUE(write_message(directory_ + "/job.pb", job).is_ok());
  EXPECT_EQ(read_job_spec(directory_)->seed(), 42u);
  ASSERT_TRUE(replace_file(directory_ + "/job.pb", "\xff\xff\xff").is_ok());
  EXPECT_EQ(read_job_spec(directory_).status().code(), Code::kBadData);
}

}  // namespace
}  // namespace lockstep
