// Documents in the engine: packed ones teach what each would teach by itself, padding teaches
// nothing, and the bits are the same for any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "tests/support/fails_with.h"
#include "tests/unit/engine/loopback_world.h"
#include "tests/unit/engine/made_documents.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_documents;
using testing::packed;
using testing::padded;
using testing::train;
using testing::TrainResult;

constexpr uint32_t kDocumentBlock = 160;
constexpr uint32_t kLongest = 60;  // so that batches of padded ones are cut to 64 or less

wire::JobSpec document_job() {
  return testing::small_gpt2(kDocumentBlock);
}

// One step over everything there is, so that the order of the samples does not matter.
TrainResult one_step_over_all(const data::Dataset& dataset) {
  wire::JobSpec job = document_job();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1);
  job.mutable_optimizer()->set_weight_decay(0);
  job.mutable_train()->set_global_batch(dataset.samples());
  job.mutable_train()->set_slots(2);
  return train(job, dataset, even_runs(2, 1), 1);
}

float largest_difference(const std::string& a, const std::string& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t at = 0; at + sizeof(float) <= std::min(a.size(), b.size()); at += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    largest = std::max(largest, std::fabs(x - y));
  }
  return largest;
}

// Neither sees another document, nor other positions than it would have alone; padding counts for
// nothing, wherever it is.
TEST(Documents, PackedTeachWhatEachTeachesByItself) {
  const auto documents = make_documents(60, kLongest);
  const auto together = packed(documents, kDocumentBlock);
  const auto alone = padded(documents, kDocumentBlock);
  ASSERT_LT(together->samples(), alone->samples() * 2 / 3);
  const TrainResult of_packs = one_step_over_all(*together);
  const TrainResult of_each = one_step_over_all(*alone);
  EXPECT_NEAR(of_packs.losses[0], of_each.losses[0], 1e-5);
  EXPECT_LT(largest_difference(of_packs.weights, of_each.weights), 1e-5f);
  // The step is one that can be told from none.
  EXPECT_GT(
      largest_difference(
          of_packs.weights,
          one_step_over_all(*packed(make_documents(60, kLongest, 4), kDocumentBlock)).weights),
      1e-2f);
}

TEST(Documents, SameBitsForAnyNumberOfRanks) {
  const auto documents = make_documents(150, kLongest);
  for (const auto& dataset :
       {packed(documents, kDocumentBlock), padded(documents, kDocumentBlock)}) {
    SCOPED_TRACE(dataset->samples());
    const wire::JobSpec job = document_job();
    const TrainResult one = train(job, *dataset, even_runs(4, 1), 9);  // more than an epoch
    for (const uint32_t ranks : {2u, 3u, 4u}) {
      SCOPED_TRACE(ranks);
      const TrainResult other = train(job, *dataset, even_runs(4, ranks), 9);
      EXPECT_EQ(other.losses, one.losses);
      EXPECT_TRUE(other.state == one.state);
    }
  }
}

// The loss of a step without the second slot is the mean over what counts in the others.
TEST(Documents, ASkippedSlotsLabelsDoNotCount) {
  const auto dataset = packed(make_documents(60, kLongest), kDocumentBlock);
  wire::JobSpec job = document_job();
  job.mutable_train()->set_global_batch(8);
  SkipSet skips;
  skips.add(0, 1, 2);
  const TrainResult skipped = train(job, *dataset, even_runs(4, 1), 1, 0, skips);
  EXPECT_NEAR(skipped.losses[0], std::log(256), 0.1);
  EXPECT_TRUE(train(job, *dataset, even_runs(4, 3), 1, 0, skips).state == skipped.state);
}

TEST(Documents, EvaluationCountsWhatCounts) {
  const auto documents = make_documents(60, kLongest);
  uint64_t labels = 0;
  for (const auto& document : documents) labels += document.size() - 1;
  const auto together = packed(documents, kDocumentBlock);
  const auto alone = padded(documents, kDocumentBlock);
  wire::JobSpec job = document_job();
  job.mutable_optimizer()->set_lr(1e-2);
  std::vector<double> losses;
  for (const data::Dataset* eval : {together.get(), alone.get()}) {
    LoopbackWorld world(job, *together, even_runs(4, 2), 0, eval);
    world.begin_generation(60);
    EXPECT_LT(world.train_to(59).losses.back(), 2);
    const auto outcomes = world.step_all();
    ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
    const wire::StepRecord& record = outcomes[0]->record;
    const auto reports = world.evaluate_all();
    ASSERT_TRUE(reports[0].is_ok()) << reports[0].status().message();
    EXPECT_EQ(reports[0]->samples(), labels);
    EXPECT_LE(reports[0]->correct(), labels);
    // A step's share of correct labels, too, counts only the labels that count.
    EXPECT_NEAR(static_cast<double>(record.correct()) /
                    static_cast<double>(record.samples() * kDocumentBlock),
                static_cast<double>(reports[0]->correct()) / static_cast<double>(labels), 0.1);
    losses.push_back(reports[0]->loss());
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-4);
}

TEST(Documents, OnlyGpt2TellsPackedOnesApart) {
  wire::JobSpec job = document_job();
  job.mutable_model()->set_name("torchscript");
  const auto dataset = packed(make_documents(60, kLongest), kDocumentBlock);
  const auto engine = testing::make_engine(job, *dataset);
  ASSERT_FALSE(engine.is_ok());
  EXPECT_THAT(engine, FailsWith(Code::kUsage, Advises("pad")));
}

}  // namespace
}  // namespace lockstep
