// Steps in which ranks check each other: healthy ones never differ, and one flipped bit shows in
// the reports of the rank that has it, and of no other.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep {
namespace {

using testing::even_runs;
using testing::LoopbackWorld;
using testing::make_patterns;

wire::JobSpec checking_job(const std::string& model, uint64_t every) {
  wire::JobSpec job = testing::small_job(model);
  job.mutable_train()->set_check_every(every);
  job.mutable_comm()->set_numerics("exact");
  return job;
}

// One step; the reports by rank.
std::vector<wire::CheckReport> reports_of_step(LoopbackWorld& world) {
  std::vector<wire::CheckReport> reports;
  for (auto& outcome : world.step_all()) {
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
    EXPECT_TRUE(outcome->check.has_value());
    if (outcome.is_ok() && outcome->check) reports.push_back(*outcome->check);
  }
  return reports;
}

// By rank, of those who have one.
std::map<uint32_t, uint64_t> weights(const std::vector<wire::CheckReport>& reports) {
  std::map<uint32_t, uint64_t> values;
  for (uint32_t r = 0; r < reports.size(); ++r) values[r] = reports[r].weights_hash();
  return values;
}
std::map<uint32_t, uint64_t> gradients(const std::vector<wire::CheckReport>& reports) {
  std::map<uint32_t, uint64_t> values;
  for (uint32_t r = 0; r < reports.size(); ++r) {
    if (reports[r].has_gradient()) values[r] = reports[r].gradient_hash();
  }
  return values;
}
std::map<uint32_t, uint64_t> sums(const std::vector<wire::CheckReport>& reports) {
  std::map<uint32_t, uint64_t> values;
  for (uint32_t r = 0; r < reports.size(); ++r) {
    if (reports[r].has_sum()) values[r] = reports[r].sum_hash();
  }
  return values;
}
bool agree(const std::map<uint32_t, uint64_t>& values) {
  for (const auto& [rank, value] : values) {
    if (value != values.begin()->second) return false;
  }
  return true;
}
// Only `rank` has another value, and at least two others agree against it.
bool stands_alone(std::map<uint32_t, uint64_t> values, uint32_t rank) {
  const auto own = values.find(rank);
  if (own == values.end() || values.size() < 3) return false;
  const uint64_t value = own->second;
  values.erase(own);
  return agree(values) && values.begin()->second != value;
}

class CheckStep : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, CheckStep, ::testing::Values("mlp", "cnn"),
                         [](const auto& model) { return std::string(model.param); });

// Two epochs of three full steps and a short one, in which slot 0 is empty.
TEST_P(CheckStep, HealthyRanksNeverDifferWhateverTheirNumber) {
  const auto dataset = make_patterns(63);
  wire::JobSpec job = checking_job(GetParam(), 1);
  job.mutable_model()->set_dropout(0.25);
  // The mlp's cannot normalise over one sample, which is all that a slot of the short step has.
  job.mutable_model()->set_batch_norm(job.model().name() == "cnn");
  constexpr Step kSteps = 8;
  LoopbackWorld alone(job, *dataset, even_runs(4, 1));
  alone.begin_generation(kSteps);
  const auto own = alone.step_all()[0]->check;  // compared with itself
  ASSERT_TRUE(own.has_value() && own->has_again());
  EXPECT_EQ(own->again_hash(), own->gradient_hash());
  const std::string state = alone.train_to(kSteps).state;
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    SCOPED_TRACE(ranks);
    LoopbackWorld world(job, *dataset, even_runs(4, ranks), 4096);
    world.begin_generation(kSteps);
    size_t compared = 0;
    for (Step step = 0; step < kSteps; ++step) {
      const auto reports = reports_of_step(world);
      ASSERT_EQ(reports.size(), ranks);
      EXPECT_TRUE(agree(weights(reports)) && agree(gradients(reports)) && agree(sums(reports)));
      EXPECT_EQ(reports[0].applied(), step + 1);
      EXPECT_EQ(sums(reports).size(), std::min(ranks, 3u));
      if (gradients(reports).empty()) continue;  // the slot has no sample in this step
      EXPECT_EQ(gradients(reports).size(), std::min(ranks, 3u));
      ++compared;
    }
    EXPECT_GE(compared, kSteps - 2);
    EXPECT_TRUE(testing::state_bytes(world.engine(0), true) == state);  // the bits are the same
  }
}

// Every third step is checked, and of the first ones 1, 2 and 4.
TEST(CheckStepOnly, EveryStepsWithoutACheckReportNothing) {
  const auto dataset = make_patterns(80);
  LoopbackWorld world(checking_job("mlp", 3), *dataset, even_runs(4, 2));
  world.begin_generation(6);
  std::vector<bool> reported;
  for (Step step = 0; step < 6; ++step) reported.push_back(world.step_all()[1]->check.has_value());
  EXPECT_EQ(reported, (std::vector<bool>{true, true, true, true, false, true}));
}

TEST(CheckStepOnly, OneFlippedBitInARanksWeightsShowsInItsReport) {
  const auto dataset = make_patterns(80);
  LoopbackWorld world(checking_job("mlp", 1), *dataset, even_runs(4, 3));
  world.begin_generation(6);
  EXPECT_TRUE(agree(weights(reports_of_step(world))));
  testing::state_of(world.engine(1))[0].data[2] ^= std::byte{0x10};
  EXPECT_TRUE(stands_alone(weights(reports_of_step(world)), 1));
}

// The same data with one bit stuck, in one pixel.
class StuckBit final : public data::StoredSamples, public data::Labels {
 public:
  explicit StuckBit(const data::Dataset& inner)
      : bytes_(inner.shape().stored_bytes()), labels_(inner.as<data::Labels>().value()) {
    const auto stored = inner.as<data::StoredSamples>();
    for (uint64_t i = 0; i < inner.samples(); ++i) {
      const auto [from, number] = stored->at(i);
      const uint8_t* sample = from.sample(number);
      pixels_.insert(pixels_.end(), sample, sample + bytes_);
      pixels_[i * bytes_ + 5] ^= 0x20;
    }
  }
  const uint8_t* sample(uint64_t i) const override { return pixels_.data() + i * bytes_; }
  uint32_t label(uint64_t i) const override {
    const auto [from, number] = labels_.at(i);
    return from.label(number);
  }
  Status unchanged(std::span<const uint64_t>) const override { return Status::ok(); }

 private:
  const uint64_t bytes_;
  const data::As<data::Labels> labels_;
  std::vector<uint8_t> pixels_;
};

TEST(CheckStepOnly, AWrongGradientShowsInTheReportOfTheRankThatComputesItAndInNoOther) {
  const auto dataset = make_patterns(80);
  const data::Dataset stuck(dataset->facts(), std::make_shared<const StuckBit>(*dataset));
  LoopbackWorld world(checking_job("mlp", 1), {dataset.get(), &stuck, dataset.get()},
                      even_runs(4, 3));
  world.begin_generation(4);
  for (Step step = 0; step < 4; ++step) {  // as the owner of a slot, and as one that checks it
    const auto reports = reports_of_step(world);
    EXPECT_TRUE(agree(weights(reports)));  // all have added up the same wrong gradient
    EXPECT_TRUE(stands_alone(gradients(reports), 1)) << step;
  }
}

}  // namespace
}  // namespace lockstep
