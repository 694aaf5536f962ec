#include "data/dataset/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/run/job/job.pb.h"
#include "data/dataset/memory_dataset.h"

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

}  // namespace
}  // namespace lockstep::data
