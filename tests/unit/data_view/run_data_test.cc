#include "data/view/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/run/job/job.pb.h"
#include "data/dataset/facts.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

using ::testing::HasSubstr;

class RunDataTest : public ::testing::Test {
 protected:
  RunDataTest() {
    write_file(dir_.path("train-images-idx3-ubyte"), some_images(500, 2, 3));
    write_file(dir_.path("train-labels-idx1-ubyte"), some_labels(500, 4));
    write_file(dir_.path("t10k-images-idx3-ubyte"), some_images(100, 2, 3, 9));
    write_file(dir_.path("t10k-labels-idx1-ubyte"), some_labels(100, 4));
    job_.mutable_data()->mutable_train()->set_path(dir_.path());
    job_.mutable_data()->mutable_eval()->set_path(dir_.path());
  }

  Result<RunData> open() { return open_run_data(job_, dir_.path("cache")); }
  wire::DataFacts facts() {
    const auto opened = open();
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return make_data_facts(*opened->train, opened->eval.get());
  }

  TemporaryDirectory dir_;
  wire::JobSpec job_;
};

TEST_F(RunDataTest, WithNothingSelectedIsTheFilesAsTheyAre) {
  const wire::DataFacts before = facts();
  EXPECT_EQ(before.train_samples(), 500U);
  EXPECT_EQ(before.eval_samples(), 100U);
  job_.mutable_data()->mutable_train()->set_fraction(1);
  job_.mutable_data()->mutable_eval()->set_fraction(1);
  job_.mutable_data()->set_split_seed(5);
  EXPECT_EQ(facts().SerializeAsString(), before.SerializeAsString());
}

// A job that names a directory for evaluation means what is in it, whatever the names of its files.
TEST_F(RunDataTest, ADirectoryNamedForEvaluationIsTakenWhole) {
  const TemporaryDirectory text;
  for (const char* name : {"train", "held"}) std::filesystem::create_directory(text.path(name));
  write_file(text.path("train/a.txt"), std::string(1'000, 'a'));
  write_file(text.path("held/b.txt"), std::string(500, 'b'));
  job_.mutable_model()->set_name("gpt2");
  job_.mutable_model()->set_block(9);
  job_.mutable_data()->mutable_train()->set_path(text.path("train"));
  job_.mutable_data()->mutable_eval()->set_path(text.path("held"));
  EXPECT_EQ(facts().eval_samples(), 55U);  // of 500 bytes
  // All of the training data would be what the model has learnt from.
  job_.mutable_data()->mutable_eval()->set_path(text.path("train") + "/");
  EXPECT_EQ(open().status().code(), Code::kNoInput);
}

TEST_F(RunDataTest, AFractionIsOfEachSplitByItself) {
  job_.mutable_data()->mutable_train()->set_fraction(0.1);
  EXPECT_EQ(facts().train_samples(), 50U);
  EXPECT_EQ(facts().eval_samples(), 100U);
  job_.mutable_data()->mutable_eval()->set_fraction(0.25);
  EXPECT_EQ(facts().eval_samples(), 25U);
}

TEST_F(RunDataTest, WhatIsHeldOutIsEvaluatedOnInsteadOfTheFilesForIt) {
  job_.mutable_data()->set_holdout(0.2);
  const wire::DataFacts held = facts();
  EXPECT_EQ(held.train_samples(), 400U);
  EXPECT_EQ(held.eval_samples(), 100U);
  EXPECT_EQ(open()->eval->files().front(), dir_.path("train-images-idx3-ubyte"));
  job_.mutable_data()->mutable_train()->set_fraction(0.5);
  EXPECT_EQ(facts().train_samples(), 200U);
  EXPECT_EQ(facts().eval_fingerprint(), held.eval_fingerprint());
  EXPECT_EQ((*open_train_data(job_, dir_.path("cache")))->fingerprint(),
            facts().train_fingerprint());
  job_.mutable_data()->set_split_seed(1);
  EXPECT_NE(facts().eval_fingerprint(), held.eval_fingerprint());
}

TEST_F(RunDataTest, TheSeedOfTheRunDoesNotChangeTheSplit) {
  job_.mutable_data()->set_holdout(0.2);
  const wire::DataFacts before = facts();
  job_.set_seed(77);
  EXPECT_EQ(facts().SerializeAsString(), before.SerializeAsString());
}

TEST_F(RunDataTest, AHoldoutOfNothingNamesTheFile) {
  job_.mutable_data()->set_holdout(0.001);
  EXPECT_THAT(open(), FailsWith(Code::kUsage, Names("data.holdout", "500 samples",
                                                    dir_.path("train-images-idx3-ubyte"))));
}

}  // namespace
}  // namespace lockstep::data
