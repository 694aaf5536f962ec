#include "data/doctor/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "comm/run/job/job.pb.h"
#include "data/dataset/memory_dataset.h"
#include "data/doctor/cold.h"
#include "tests/support/fails_with.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::doctor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kSamples = 300;

std::unique_ptr<data::Dataset> in_memory() {
  const data::SampleShape shape{.channels = 1, .height = 6, .width = 5};
  auto dataset = data::make_memory_dataset(shape, std::vector<uint8_t>(kSamples * 30, 7),
                                           std::vector<uint32_t>(kSamples, 1));
  return std::move(dataset).value();
}

wire::JobSpec job() {
  wire::JobSpec job;
  job.mutable_train()->set_global_batch(50);
  job.mutable_train()->set_slots(4);
  job.mutable_cluster()->set_workers(2);
  job.mutable_data()->set_prefetch_batches(2);
  job.mutable_data()->add_transforms("normalize");
  return job;
}

TEST(Ladder, AWorkerDoesItsShareOfTheSlotsRoundedUp) {
  const RunShape share = share_of_worker(job(), kSamples);
  EXPECT_EQ(share.slots, 2u);
  EXPECT_EQ(share.global_batch, 26u);  // twice 12.5, rounded up
}

TEST(Ladder, ASettingSaysWhatOfItsChangesTheJobCanTake) {
  const auto dataset = in_memory();
  wire::JobSpec wanted = job();
  EXPECT_TRUE(setting_of(wanted, *dataset).can_shuffle_blocks);
  EXPECT_FALSE(setting_of(wanted, *dataset).can_use_graphs) << "on a CPU";
  wanted.mutable_cluster()->set_device("cuda");
  wanted.mutable_train()->set_graph("on");
  EXPECT_TRUE(setting_of(wanted, *dataset).can_use_graphs);
  EXPECT_TRUE(setting_of(wanted, *dataset).uses_graphs);
  wanted.mutable_data()->set_documents("pad");
  wanted.mutable_data()->set_length_classes(3);
  EXPECT_FALSE(setting_of(wanted, *dataset).can_use_graphs);
  EXPECT_FALSE(setting_of(wanted, *dataset).uses_graphs);
  EXPECT_FALSE(setting_of(wanted, *dataset).can_shuffle_blocks);
}

TEST(Ladder, OfStoredSamplesThereAreReadsSamplesAndBatches) {
  const auto dataset = in_memory();
  Measurements out;
  out.setting = setting_of(job(), *dataset);
  LadderOptions options;
  options.seconds = 0.1;
  std::vector<std::string> told;
  options.progress = [&](const std::string& what) { told.push_back(what); };
  ASSERT_EQ(measure_data(job(), *dataset, options, out), Status::ok());
  for (const RungKind kind : {RungKind::kRaw, RungKind::kSamples, RungKind::kLoader}) {
    const Rung* rung = out.find(kind);
    ASSERT_NE(rung, nullptr) << rung_name(kind);
    EXPECT_GT(rung->rate.median, 0) << rung_name(kind);
    EXPECT_LE(rung->rate.low, rung->rate.high) << rung_name(kind);
    EXPECT_GT(rung->limit, 0) << rung_name(kind);
  }
  EXPECT_EQ(out.find(RungKind::kDecode), nullptr);
  EXPECT_THAT(told, Contains("loading batches"));
}

TEST(Ladder, WhereNothingCanBeMadeColdThatIsSaidAndNothingColdIsMeasured) {
  const auto dataset = in_memory();
  Measurements out;
  out.setting = setting_of(job(), *dataset);
  LadderOptions options;
  options.seconds = 0.1;
  ASSERT_EQ(measure_data(job(), *dataset, options, out), Status::ok());
  EXPECT_EQ(out.find(RungKind::kRawCold), nullptr);
  EXPECT_EQ(out.find(RungKind::kLoaderCold), nullptr);
  EXPECT_EQ(out.cold_share, 0);
  EXPECT_THAT(out.notes, Contains(Says("cold reads")));
}

TEST(MakeCold, LeavesWhatIsInMemoryOnlyAsItWas) {
  const auto dataset = in_memory();
  const std::vector<uint64_t> samples{0, 1, kSamples - 1};
  const Coldness cold = make_cold(*dataset, samples);
  EXPECT_EQ(cold.share, 0);
  EXPECT_THAT(cold.why_not, HasSubstr("which files"));
  EXPECT_EQ(stored_sample(*dataset, 1)[29], 7);
}

}  // namespace
}  // namespace lockstep::doctor
