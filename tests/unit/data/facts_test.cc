#include "data/dataset/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/run/job/job.pb.h"
#include "data/dataset/memory_dataset.h"
#include "data/open/open_dataset.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"

namespace lockstep::data {
namespace {

std::unique_ptr<Dataset> memory(SampleShape shape, std::vector<uint32_t> labels) {
  std::vector<uint8_t> pixels(shape.elements() * labels.size(), 9);
  return std::move(make_memory_dataset(shape, std::move(pixels), std::move(labels))).value();
}

TEST(DataFacts, HoldCountsAndFingerprints) {
  const auto train = memory({1, 2, 2}, {0, 1, 2});
  const auto eval = memory({1, 2, 2}, {0, 1});
  const wire::DataFacts facts = make_data_facts(*train, eval.get());
  EXPECT_EQ(facts.train_fingerprint(), train->fingerprint());
  EXPECT_EQ(facts.eval_fingerprint(), eval->fingerprint());
  EXPECT_EQ(facts.train_samples(), 3U);
  EXPECT_EQ(facts.eval_samples(), 2U);
  EXPECT_EQ(make_data_facts(*train, nullptr).eval_fingerprint(), "");
}

TEST(EvalData, MustHaveTheShapeAndTheClassesOfTheTrainingData) {
  const auto train = memory({1, 2, 2}, {0, 1, 2});
  EXPECT_TRUE(check_eval_fits_train(*train, *memory({1, 2, 2}, {1, 2})).is_ok());
  const Status shape = check_eval_fits_train(*train, *memory({1, 2, 3}, {0}));
  EXPECT_EQ(shape.code(), Code::kBadData);
  EXPECT_THAT(shape.message(), testing::HasSubstr("1x2x3"));
  const Status classes = check_eval_fits_train(*train, *memory({1, 2, 2}, {3}));
  EXPECT_EQ(classes.code(), Code::kBadData);
  EXPECT_THAT(classes.message(), testing::HasSubstr("label 3"));
}

TEST(EvalData, WhatDoesNotFitIsToldWithItsFile) {
  const TemporaryDirectory dir;
  const auto put = [&](const std::string& images, const std::string& labels) {
    write_file(dir.path("t10k-images-idx3-ubyte"), images);
    write_file(dir.path("t10k-labels-idx1-ubyte"), labels);
  };
  const auto checked = [&] {
    const auto open = [&](Split split) {
      return open_dataset(spec_of(dir.path()), split, dir.path("cache"));
    };
    const auto train = open(Split::kTrain);
    const auto eval = open(Split::kEval);
    return check_eval_fits_train(**train, **eval);
  };
  write_file(dir.path("train-images-idx3-ubyte"), some_images(20, 3, 4));
  write_file(dir.path("train-labels-idx1-ubyte"), some_labels(20, 3));
  put(some_images(8, 3, 4), some_labels(8, 7));
  EXPECT_THAT(checked(), FailsWith(Code::kBadData, Names(dir.path("t10k-labels-idx1-ubyte"),
                                                         "sample 6", "label 6", "data is 2")));
  put(some_images(8, 3, 5), some_labels(8, 3));
  EXPECT_THAT(checked(), FailsWith(Code::kBadData, Names(dir.path("t10k-images-idx3-ubyte")),
                                   Says("1x3x5", "1x3x4")));
}

}  // namespace
}  // namespace lockstep::data
