#include "data/view/mixed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "comm/run/job/job.pb.h"
#include "comm/run/plan/digest.h"
#include "data/dataset/dataset.h"
#include "data/dataset/facts.h"
#include "data/loader/job_order.h"
#include "data/loader/loader.h"
#include "data/view/run_data.h"
#include "tests/support/fails_with.h"
#include "tests/support/files.h"
#include "tests/support/idx_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/data/support/samples_of.h"

namespace lockstep::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MixedDatasetTest : public ::testing::Test {
 protected:
  MixedDatasetTest() {
    write("web", 500, 2, 3, 1);
    write("code", 80, 2, 3, 2);
    write("books", 40, 2, 3, 3);
    auto& data = *job_.mutable_data();
    data.mutable_train()->set_path(dir_.path("web"));
    data.set_mix_weight(7);
    add("code", 2);
    add("books", 1);
  }

  void write(const std::string& name, uint32_t count, uint32_t height, uint32_t width,
             uint32_t seed) {
    std::filesystem::create_directory(dir_.path(name));
    write_file(dir_.path(name + "/train-images-idx3-ubyte"),
               some_images(count, height, width, seed));
    write_file(dir_.path(name + "/train-labels-idx1-ubyte"), some_labels(count, 4));
  }
  wire::MixSpec& add(const std::string& name, uint32_t weight) {
    wire::MixSpec& mix = *job_.mutable_data()->add_mix();
    mix.set_path(dir_.path(name));
    mix.set_weight(weight);
    return mix;
  }

  Result<RunData> open() { return open_run_data(job_, dir_.path("cache")); }
  std::unique_ptr<Dataset> alone(const std::string& name) {
    wire::JobSpec job;
    job.mutable_data()->mutable_train()->set_path(dir_.path(name));
    auto opened = open_train_data(job, dir_.path("cache"));
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return std::move(opened).value();
  }
  Status refused() {
    const auto opened = open();
    EXPECT_EQ(opened.status().code(), Code::kUsage);
    return opened.status();
  }

  TemporaryDirectory dir_;
  wire::JobSpec job_;
};

TEST_F(MixedDatasetTest, HasTheSamplesOfAllOneSetAfterAnother) {
  const auto opened = open();
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  const Dataset& mixed = *opened->train;
  ASSERT_EQ(mixed.samples(), 620u);
  uint64_t i = 0;
  for (const char* name : {"web", "code", "books"}) {
    const auto set = alone(name);
    for (uint64_t j = 0; j < set->samples(); ++j, ++i) {
      EXPECT_EQ(
          std::memcmp(stored_sample(mixed, i), stored_sample(*set, j), set->shape().stored_bytes()),
          0);
      EXPECT_EQ(label_of(mixed, i), label_of(*set, j));
      EXPECT_EQ(mixed.name_of(i), set->name_of(j));
      ASSERT_TRUE(mixed.extent(i) && set->extent(j));
      EXPECT_EQ(mixed.extent(i)->offset, set->extent(j)->offset);
    }
  }
  EXPECT_EQ(mixed.files().size(), 6u);
  EXPECT_EQ(mixed.statistics(), alone("web")->statistics());
}

TEST_F(MixedDatasetTest, TellsWhatProvesItsOrderAfterwards) {
  const auto opened = open();
  const wire::DataFacts facts = make_data_facts(*opened->train, nullptr);
  EXPECT_EQ(facts.train_samples(), 714u);  // 71 blocks of 10, then 3 of data.train and 1 between
  ASSERT_EQ(facts.mixed_size(), 3);
  EXPECT_EQ(facts.mixed(1).fingerprint(), alone("code")->fingerprint());
  EXPECT_EQ(facts.mixed(1).samples(), 80u);
  EXPECT_EQ(facts.mixed(1).weight(), 2u);
  EXPECT_EQ(job_order(job_, *opened->train).samples, facts.train_samples());
  EXPECT_EQ(job_order(job_, *opened->train).parts.size(), 3u);
}

// From anywhere in the run, for any run of slots.
TEST_F(MixedDatasetTest, TheLoaderDeliversThePlan) {
  const auto opened = open();
  const Dataset& mixed = *opened->train;
  LoaderOptions options;
  options.order = job_order(job_, mixed);
  options.shape = {epoch_units(mixed), 50, 4};  // 15 steps an epoch, the last of 14
  for (const auto& [first, slots] : {std::pair<Step, SlotRun>{0, {0, 4}}, {37, {1, 3}}}) {
    options.first_step = first;
    options.end_step = first + 20;
    options.slots = slots;
    const auto loader = Loader::start(mixed, options);
    ASSERT_TRUE(loader.is_ok()) << loader.status().message();
    uint32_t batches = 0;
    for (;; ++batches) {
      const auto next = (*loader)->next();
      ASSERT_TRUE(next.is_ok()) << next.status().message();
      if (*next == nullptr) break;
      const Batch& batch = **next;
      const StepPlan plan = plan_step(options.shape, batch.step);
      const EpochOrder order(options.order, plan.epoch);
      EXPECT_EQ(batch.digest, planned_digest(order, plan, batch.slot, 4));
      const PositionRange range = slot_positions(plan, batch.slot, 4);
      ASSERT_EQ(batch.samples, range.size());
      for (uint64_t i = 0; i < range.size(); ++i)
        EXPECT_EQ(batch.labels[i], label_of(mixed, order.at(range.begin + i)));
    }
    EXPECT_EQ(batches, 20 * (slots.end - slots.begin));
  }
}

TEST_F(MixedDatasetTest, WeightsAndDataMakeTheFingerprint) {
  const std::string before = (*open()).train->fingerprint();
  EXPECT_EQ((*open_train_data(job_, dir_.path("cache")))->fingerprint(), before);
  job_.mutable_data()->mutable_mix(1)->set_weight(2);
  EXPECT_NE((*open()).train->fingerprint(), before);
  job_.mutable_data()->mutable_mix(1)->set_weight(1);
  job_.mutable_data()->mutable_mix(1)->set_fraction(0.5);
  EXPECT_NE((*open()).train->fingerprint(), before);
}

TEST_F(MixedDatasetTest, FractionsAreOfEachSetAndAHoldoutIsOfTheFirst) {
  job_.mutable_data()->set_holdout(0.2);
  job_.mutable_data()->mutable_mix(0)->set_fraction(0.5);
  const auto opened = open();
  ASSERT_TRUE(opened.is_ok()) << opened.status().message();
  EXPECT_EQ(opened->eval->samples(), 100u);
  EXPECT_EQ(opened->train->parts()[0].samples, 400u);
  EXPECT_EQ(opened->train->parts()[1].samples, 40u);
  EXPECT_EQ(opened->train->parts()[2].samples, 40u);
}

TEST_F(MixedDatasetTest, AFileThatIsAnotherIsFoundInEverySet) {
  const auto opened = open();
  const std::vector<uint64_t> of_all = {3, 499, 500, 579, 580, 619};
  ASSERT_TRUE(opened->train->unchanged(of_all).is_ok());
  // Written over in place: replacing it would leave what is mapped.
  write_file(dir_.path("books/train-images-idx3-ubyte"), some_images(41, 2, 3, 9));
  EXPECT_TRUE(opened->train->unchanged(std::vector<uint64_t>{3, 579}).is_ok());
  EXPECT_THAT(opened->train->unchanged(of_all).message(), HasSubstr("books"));
}

TEST_F(MixedDatasetTest, SamplesOfOtherSizesAreRefusedWithBothFiles) {
  write("wide", 40, 2, 4, 5);
  add("wide", 1);
  EXPECT_THAT(refused().message(),
              AllOf(HasSubstr("wide/train-images"), HasSubstr("web/train-images"),
                    HasSubstr("1x2x4"), HasSubstr("1x2x3")));
}

TEST_F(MixedDatasetTest, TheSameSamplesTwiceAreRefused) {
  write("copy", 80, 2, 3, 2);
  add("copy", 1);
  EXPECT_THAT(refused().message(),
              AllOf(HasSubstr("copy/train-images"), HasSubstr("code/train-images"),
                    HasSubstr("larger weight")));
}

// The other part would train on the samples that are held out of data.train.
TEST_F(MixedDatasetTest, TwoPartsOfTheSameSamplesAreRefused) {
  job_.mutable_data()->set_holdout(0.2);
  add("web", 1);
  EXPECT_THAT(refused().message(), HasSubstr("larger weight"));
  job_.mutable_data()->set_holdout(0);
  job_.mutable_data()->mutable_mix(2)->set_fraction(0.3);
  EXPECT_THAT(refused().message(), HasSubstr("larger weight"));
}

TEST_F(MixedDatasetTest, TablesWithOtherColumnsAreRefused) {
  job_.mutable_data()->clear_mix();
  const auto table = [&](const std::string& name, const std::string& header) {
    std::filesystem::create_directory(dir_.path(name));
    std::string text = header + "\n";
    for (int i = 0; i < 40; ++i)
      text += std::to_string(i) + "," + std::to_string(2 * i + header[0]) + "," +
              std::to_string(i % 3) + "\n";
    write_file(dir_.path(name + "/train.csv"), {text.begin(), text.end()});
  };
  table("first", "a,b,label");
  table("turned", "b,a,label");
  job_.mutable_data()->mutable_train()->set_path(dir_.path("first"));
  add("turned", 1);
  EXPECT_THAT(refused().message(), AllOf(HasSubstr("turned/train.csv"), HasSubstr("columns")));
}

// The first table names no columns, so it fits every other table.
TEST_F(MixedDatasetTest, TablesThatFitTheFirstOnlyAreRefused) {
  job_.mutable_data()->clear_mix();
  const auto table = [&](const std::string& name, const std::string& header) {
    std::filesystem::create_directory(dir_.path(name));
    std::string text = header;
    for (size_t i = 0; i < 40; ++i)
      text += std::to_string(i) + "," + std::to_string(2 * i + header.size()) + "," +
              std::to_string(i % 3) + "\n";
    write_file(dir_.path(name + "/train.csv"), {text.begin(), text.end()});
  };
  table("first", "");
  table("named", "a,b,label\n");
  table("turned", "bb,a,label\n");
  job_.mutable_data()->mutable_train()->set_path(dir_.path("first"));
  add("named", 1);
  EXPECT_TRUE(open().is_ok()) << open().status().message();
  add("turned", 1);
  EXPECT_THAT(refused().message(), AllOf(HasSubstr("turned/train.csv"), HasSubstr("columns")));
}

TEST_F(MixedDatasetTest, WeightsThatNoEpochHoldsAreRefusedWithTheFile) {
  job_.mutable_data()->set_mix_weight(9'000);
  EXPECT_THAT(refused().message(),
              AllOf(Names("data set 1"), HasSubstr("1: " + dir_.path("code"))));
}

}  // namespace
}  // namespace lockstep::data
