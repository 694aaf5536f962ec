// What the status page is made of: curves, phases, timeline, and their JSON.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "coordinator/report/curves.h"
#include "coordinator/report/phase_watch.h"
#include "coordinator/report/report.h"
#include "coordinator/report/timeline.h"
#include "coordinator/report/watch_json.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;

StepEntry step_of(Step step, double loss) {
  StepEntry entry;
  entry.step = step;
  entry.loss = loss;
  entry.lr = 0.5;
  entry.samples = 10;
  entry.wall_us = 1'000;
  return entry;
}

Curves curves_of(Step steps) {
  Curves curves;
  for (Step step = 0; step < steps; ++step) curves.add(step_of(step, static_cast<double>(step)));
  return curves;
}

void expect_whole(const std::vector<CurveBin>& bins, uint64_t width, Step steps) {
  Step seen = 0;
  for (const CurveBin& bin : bins) {
    EXPECT_EQ(bin.first % width, 0u);
    EXPECT_EQ(bin.first, seen) << "no step is missing";
    seen += bin.steps;
    EXPECT_EQ(bin.samples, 10 * bin.steps);
    EXPECT_EQ(bin.wall_us, 1'000 * bin.steps);
    EXPECT_EQ(bin.loss_min, static_cast<double>(bin.first));
    EXPECT_EQ(bin.loss_max, static_cast<double>(seen - 1));
    EXPECT_DOUBLE_EQ(bin.loss_sum / static_cast<double>(bin.finite),
                     (bin.loss_min + bin.loss_max) / 2);
  }
  EXPECT_EQ(seen, steps);
}

TEST(Curves, KeepEveryStepOfAShortRunAndBinsOfALongOne) {
  const Curves few = curves_of(100);
  EXPECT_EQ(few.bins().size(), 100u);
  expect_whole(few.bins(), 1, 100);
  const Curves many = curves_of(100'003);
  EXPECT_LE(many.bins().size(), Curves::kBins);
  EXPECT_GT(many.bins().size(), Curves::kBins / 2 - 1);
  expect_whole(many.bins(), many.width(), 100'003);
}

TEST(Curves, AreThinnedToAsManyPointsAsAreAskedFor) {
  const Curves curves = curves_of(5'001);
  for (const size_t points : {1, 2, 7, 500, 100'000}) {
    const auto bins = curves.thinned(points);
    EXPECT_LE(bins.size(), points);
    expect_whole(bins, bins.size() > 1 ? bins[1].first : 1, 5'001);
  }
  EXPECT_TRUE(Curves().thinned(5).empty());
}

TEST(Curves, ALossThatIsNoNumberIsLeftOutOfTheMean) {
  Curves curves;
  curves.add(step_of(0, NAN));
  EXPECT_TRUE(json::parse(history_json(curves, {}, 10))["loss"][0].is_null());
  curves.add(step_of(1, 3));
  const json merged = json::parse(history_json(curves, {}, 1));
  EXPECT_EQ(merged["loss"], json({3.0}));
  EXPECT_EQ(merged["loss_min"], json({3.0}));
  EXPECT_EQ(merged["samples_per_second"], json({10'000.0}));
  EXPECT_EQ(merged["steps"], 2);
}

TEST(HistoryJson, KeepsTheNewestOfManyEvaluations) {
  std::map<Step, EvalEntry> evals;
  for (Step step = 1; step <= 1'000; ++step) evals[step] = {1, step, 0, 10, 5, 0.25};
  const json out = json::parse(history_json({}, evals, 7));
  EXPECT_LE(out["evals"]["step"].size(), 7u);
  EXPECT_EQ(out["evals"]["step"].back(), 1'000);
  EXPECT_EQ(out["evals"]["accuracy"].back(), 0.5);
}

TEST(Query, GivesNumbersWithinLimits) {
  EXPECT_EQ(query_number("points=5", "points", 9, 100), 5u);
  EXPECT_EQ(query_number("x=1&points=50&points=6", "points", 9, 100), 50u);
  EXPECT_EQ(query_number("points=5000", "points", 9, 100), 100u);
  EXPECT_EQ(query_number("points=0", "points", 9, 100), 1u);
  for (const char* odd : {"", "points", "points=", "points=-1", "points=5x", "spoints=5",
                          "&&=", "points=99999999999999999999999"})
    EXPECT_EQ(query_number(odd, "points", 9, 100), 9u) << odd;
}

wire::StepRecord record_of(uint32_t forward_us) {
  wire::StepRecord record;
  record.set_samples(8);
  record.mutable_times()->set_forward_us(forward_us);
  record.mutable_times()->set_communication_us(1);
  return record;
}

TEST(PhaseWatch, ForgetsOldSteps) {
  PhaseWatch watch;
  for (uint64_t i = 0; i < PhaseWatch::kWindowSteps; ++i) watch.add(1, record_of(1'000));
  for (uint64_t i = 0; i < 2 * PhaseWatch::kWindowSteps; ++i) watch.add(1, record_of(10));
  watch.add(2, record_of(7));
  EXPECT_EQ(watch.of(1).us[1], 10 * watch.of(1).steps) << "the slow steps are long past";
  EXPECT_GE(watch.of(1).steps, PhaseWatch::kWindowSteps);
  EXPECT_LE(watch.of(1).steps, 2 * PhaseWatch::kWindowSteps);
  EXPECT_EQ(watch.of(2).own_us(), 7u) << "without communication";
  EXPECT_EQ(watch.all().steps, watch.of(1).steps + 1);
}

TEST(PhaseWatch, ForgetsLongStepsAfterMinutesAndNotHours) {
  PhaseWatch watch;
  for (int i = 0; i < 10; ++i) watch.add(1, record_of(PhaseWatch::kWindowUs));
  for (int i = 0; i < 10; ++i) watch.add(1, record_of(PhaseWatch::kWindowUs / 4));
  EXPECT_EQ(watch.of(1).us[1], watch.of(1).steps * (PhaseWatch::kWindowUs / 4));
  EXPECT_GE(watch.of(1).steps, 4u);
}

TEST(StatusReport, TellsWhereTheTimeOfEveryRankGoesAndListsAsManyAsAreAskedFor) {
  State state;
  Options options;
  options.shape = {50, 8, 4};
  options.total_steps = 70;
  StatusDetail detail;
  for (MemberId id : {1, 2, 3}) {
    state.members[id].id = id;
    state.members[id].rank = static_cast<uint32_t>(id - 1);
    state.members[id].node = "n\xFF";  // no UTF-8
    state.members[id].state = MemberState::kTraining;
    state.ranks.push_back(id);
    detail.phases.add(id, record_of(1'000'000));
  }
  state.members[1].slots = {0, 2};
  detail.members = 2;
  const json out = json::parse(status_json(state, options, {}, {}, detail));
  EXPECT_EQ(out["members"].size(), 2u);
  EXPECT_EQ(out["members_total"], 3);
  EXPECT_EQ(out["members_by_state"], json({{"training", 3}}));
  EXPECT_EQ(out["members"][0]["own_samples_per_second"], 4.0) << "2 of 4 slots, 8 samples, 1 s";
  EXPECT_EQ(out["phases"]["forward"], 3.0);
}

TEST(Timeline, TellsWhyThereIsAGeneration) {
  Timeline timeline;
  const auto add = [&timeline](const char* event, const char* message, uint64_t generation) {
    timeline.add({"2026-01-01T00:00:00.000Z", "info", event, message, generation, 9});
  };
  add("generation_prepared", "generation 2 of 1 worker is prepared: rank 1 was killed", 2);
  add("message_refused", "of no interest", 2);
  add("generation_started", "generation 2 starts after step 9 of 90 with 1 worker", 2);
  add("change_planned", "at the next boundary, generation 3 of 2 workers takes over: x joins", 2);
  add("generation_switched", "generation 3 of 2 workers took over after step 9", 3);
  const json out = json::parse(events_json(timeline, 10));
  ASSERT_EQ(out["generations"].size(), 2u);
  EXPECT_EQ(out["generations"][0]["why"], "x joins");
  EXPECT_EQ(out["generations"][1]["why"], "rank 1 was killed");
  EXPECT_EQ(out["generations"][1]["generation"], 2);
  EXPECT_EQ(out["events"].size(), 4u) << "the newest first, and no refusals";
  EXPECT_EQ(out["events"][0]["event"], "generation_switched");
  EXPECT_EQ(json::parse(events_json(timeline, 1))["events"].size(), 1u);
}

TEST(Timeline, IsBounded) {
  Timeline timeline;
  for (uint64_t i = 0; i < 5'000; ++i) timeline.add({"", "info", "generation_started", "x", i, i});
  EXPECT_EQ(timeline.events().size(), Timeline::kEvents);
  EXPECT_EQ(timeline.generations().size(), Timeline::kGenerations);
  EXPECT_EQ(timeline.generations().back().generation, 4'999u);
}

TEST(Timeline, GoesOnWithTheLogOfTheProcessBefore) {
  const std::string path = testing::TempDir() + "timeline-" + std::to_string(::getpid());
  {
    std::ofstream file(path);
    for (int i = 0; i < 20'000; ++i)  // more than is read
      file << R"({"ts":"t","level":"info","event":"old","message":"padding padding padding"})"
           << "\n";
    file << "no JSON\n[1]\n"
         << R"({"ts":"t","level":"warn","event":"died","message":"m","generation":4,"step":7})"
         << "\n"
         << R"({"ts":"t","level":"warn","event":"half)";
  }
  Timeline timeline;
  timeline.add_tail_of(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(timeline.events().empty());
  const TimelineEvent& last = timeline.events().back();
  EXPECT_EQ(last.event, "died");
  EXPECT_EQ(last.generation, 4u);
  EXPECT_EQ(last.step, 7u);
  timeline.add_tail_of("/nowhere");
}

}  // namespace
}  // namespace lockstep::coordinator
