#include "comm/run/directory/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "tests/support/fails_with.h"
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
  job.mutable_train()->set_slots(2);
  ASSERT_TRUE(write_job_spec(directory_, job).is_ok());
  EXPECT_EQ(read_job_spec(directory_)->seed(), 42u);
}

TEST_F(RunFiles, AnAbsentOrDamagedJobIsToldApart) {
  EXPECT_EQ(read_job_spec(directory_).status().code(), Code::kNoInput);
  const std::string too_large(limits::kJobFileBytes + 1, 'x');
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(), too_large}) {
    ASSERT_TRUE(replace_file(directory_ + "/job.pb", bytes).is_ok());
    const Status status = read_job_spec(directory_).status();
    EXPECT_THAT(status, FailsWith(Code::kBadData, Names(directory_ + "/job.pb"), Says("damaged")));
    EXPECT_EQ(read_run_inputs(directory_).status().message(), status.message());
  }
}

TEST_F(RunFiles, FactsWithoutSamplesAreDamaged) {
  wire::JobSpec job;
  job.mutable_train()->set_slots(2);
  ASSERT_TRUE(write_job_spec(directory_, job).is_ok());
  EXPECT_EQ(read_run_inputs(directory_).status().code(), Code::kNoInput);
  wire::DataFacts facts;
  ASSERT_TRUE(write_data_facts(directory_, facts).is_ok());
  EXPECT_EQ(read_run_inputs(directory_).status().code(), Code::kBadData);
  facts.set_train_samples(10);
  ASSERT_TRUE(write_data_facts(directory_, facts).is_ok());
  EXPECT_EQ(read_run_inputs(directory_)->facts.train_samples(), 10u);
}

TEST_F(RunFiles, OpenFactsHaveNoSamplesYet) {
  wire::DataFacts facts;
  facts.set_open(true);
  ASSERT_TRUE(write_data_facts(directory_, facts).is_ok());
  const auto read = read_data_facts(directory_);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_TRUE(read->open());
}

TEST_F(RunFiles, WhatACoordinatorWritesOfItselfReadsBack) {
  const CoordinatorFile written{7, "fashion", {"::1", 4000}, {"host", 4001}, 3, 1234};
  ASSERT_TRUE(write_coordinator_file(directory_, written).is_ok());
  const auto read = read_coordinator_file(directory_);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->pid, 7);
  EXPECT_EQ(read->run_id, "fashion");
  EXPECT_EQ(read->control, written.control);
  EXPECT_EQ(read->http, written.http);
  EXPECT_EQ(read->term, 3u);
  EXPECT_EQ(read->started_wall_ms, 1234);
}

}  // namespace
}  // namespace lockstep
