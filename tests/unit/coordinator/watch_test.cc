// Tests what makes up the status page: curves, phases, timeline, and their JSON.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "coordinator/report/curves.h"
#include "coordinator/report/job_json.h"
#include "coordinator/report/phase_watch.h"
#include "coordinator/report/report.h"
#include "coordinator/report/step_watch.h"
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
  EXPECT_TRUE(json::parse(history_json(curves, {}, 1, 10))["loss"][0].is_null());
  curves.add(step_of(1, 3));
  const json merged = json::parse(history_json(curves, {}, 1, 1));
  EXPECT_EQ(merged["loss"], json({3.0}));
  EXPECT_EQ(merged["loss_min"], json({3.0}));
  EXPECT_EQ(merged["samples_per_second"], json({10'000.0}));
  EXPECT_EQ(merged["steps"], 2);
}

TEST(HistoryJson, KeepsTheNewestOfManyEvaluations) {
  std::map<Step, EvalEntry> evals;
  for (Step step = 1; step <= 1'000; ++step) evals[step] = {1, step, 0, 10, 5, 0.25};
  const json out = json::parse(history_json({}, evals, 1, 7));
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

constexpr Span kTen = Span::kTenSeconds;
constexpr Span kMinute = Span::kMinute;

// A step each 100 ms from `from_ms` on, which takes a rank `forward_us`.
void run_for(PhaseWatch& watch, int64_t from_ms, int64_t ms, uint32_t forward_us) {
  for (int64_t at = from_ms; at < from_ms + ms; at += 100) watch.add(at, 1, record_of(forward_us));
}

TEST(PhaseWatch, ALongRunShowsItsLastSeconds) {
  PhaseWatch watch;
  run_for(watch, 0, 3'600'000, 1'000);    // an hour
  run_for(watch, 3'600'000, 30'000, 10);  // and half a minute of another kind
  const int64_t now_ms = 3'630'000;
  const PhaseSums ten = watch.of(1, kTen, now_ms);
  EXPECT_EQ(ten.us[1], 10 * ten.steps) << "the slow steps are long past";
  EXPECT_NEAR(static_cast<double>(ten.steps), 110, 11);
  const PhaseSums minute = watch.of(1, kMinute, now_ms);
  EXPECT_GT(minute.us[1], 10 * minute.steps) << "half of its steps are slow ones";
  EXPECT_NEAR(static_cast<double>(minute.steps), 660, 66);
}

TEST(PhaseWatch, WithoutAStepInTheSpanTheLastOneIsShown) {
  PhaseWatch watch;
  watch.add(0, 1, record_of(5));
  watch.add(1'000, 1, record_of(7));
  watch.add(1'000, 2, record_of(9));
  EXPECT_EQ(watch.of(1, kMinute, 500'000).us[1], 7u);
  EXPECT_EQ(watch.of(2, kTen, 500'000).own_us(), 9u) << "without communication";
  EXPECT_EQ(watch.all(kTen, 500'000).steps, 2u);
  EXPECT_EQ(watch.of(3, kTen, 500'000).steps, 0u);
}

StepEntry timed_step(double loss, uint64_t samples) {
  StepEntry entry = step_of(0, loss);
  entry.samples = samples;
  entry.correct = samples / 2;
  entry.wall_us = 100'000;
  return entry;
}

TEST(StepWatch, ALiveFigureIsOfItsSpanAndNotOfTheWholeRun) {
  StepWatch watch;
  int64_t now_ms = 0;
  for (; now_ms < 600'000; now_ms += 100) watch.add(now_ms, timed_step(5, 10));
  for (; now_ms < 615'000; now_ms += 100) watch.add(now_ms, timed_step(1, 40));
  EXPECT_NEAR(*watch.samples_per_second(kTen, now_ms), 400, 20);
  EXPECT_DOUBLE_EQ(*watch.loss(kTen, now_ms), 1);
  EXPECT_DOUBLE_EQ(*watch.correct_per_sample(kTen, now_ms), 0.5);
  EXPECT_GT(*watch.samples_per_second(kMinute, now_ms), 120);
  EXPECT_LT(*watch.samples_per_second(kMinute, now_ms), 250);
  EXPECT_GT(*watch.loss(kMinute, now_ms), 3);
}

TEST(StepWatch, ARateFallsWhileNothingHappens) {
  StepWatch watch;
  int64_t now_ms = 1'000'000;
  for (int i = 0; i < 1'000; ++i, now_ms += 100) watch.add(now_ms, timed_step(1, 10));
  EXPECT_NEAR(*watch.samples_per_second(kTen, now_ms), 100, 10);
  EXPECT_LT(*watch.samples_per_second(kTen, now_ms + 6'000), 60);
  EXPECT_EQ(*watch.samples_per_second(kTen, now_ms + 13'000), 0);
  EXPECT_GT(*watch.samples_per_second(kMinute, now_ms + 13'000), 50);
  EXPECT_FALSE(watch.loss(kTen, now_ms + 13'000));
}

TEST(StepWatch, WhatIsNotKnownIsNotZero) {
  StepWatch watch;
  EXPECT_FALSE(watch.samples_per_second(kTen, 0));
  watch.add(5'000, timed_step(1, 10));
  EXPECT_FALSE(watch.samples_per_second(kTen, 5'500)) << "half a second tells no rate";
  StepEntry lasting = timed_step(1, 10);
  lasting.wall_us = 30'000'000;
  watch.add(35'000, lasting);
  EXPECT_FALSE(watch.samples_per_second(kTen, 60'000)) << "a step lasts longer than the span";
  EXPECT_TRUE(watch.samples_per_second(kMinute, 60'000));
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
    detail.phases.add(0, id, record_of(1'000'000));
  }
  state.members[1].slots = {0, 2};
  detail.members = 2;
  const json out = json::parse(status_json(state, options, {}, {}, detail));
  EXPECT_EQ(out["members"].size(), 2u);
  EXPECT_EQ(out["members_total"], 3);
  EXPECT_EQ(out["members_by_state"], json({{"training", 3}}));
  EXPECT_EQ(out["members"][0]["own_samples_per_second"], 4.0) << "2 of 4 slots, 8 samples, 1 s";
  EXPECT_EQ(out["phases"]["forward"], 3.0);
  EXPECT_EQ(out["phases_60s"]["forward"], 3.0);
}

TEST(StatusReport, ItsFiguresAreOfTheLastSecondsAndItSaysWhatIsLearned) {
  State state;
  Options options;
  options.shape = {50, 8, 4};
  options.total_steps = 10'000;
  RunStats stats;
  StatusDetail detail;
  for (int i = 0; i < 700; ++i) {
    StepEntry step = timed_step(i < 550 ? 5 : 1, 10);
    step.step = static_cast<Step>(i);
    step.lr = 0.25;
    stats.add(step);
    detail.now_ms = int64_t{i} * 100;
    detail.steps.add(detail.now_ms, step);
  }
  json out = json::parse(status_json(state, options, stats, {}, detail));
  EXPECT_EQ(out["loss"], 1.0) << "ten seconds of the new loss";
  EXPECT_EQ(out["recent"]["10s"]["loss"], 1.0);
  EXPECT_GT(out["recent"]["60s"]["loss"], 3.0);
  EXPECT_EQ(out["lr"], 0.25);
  EXPECT_EQ(out["predicts"], "classes");
  options.job.mutable_data()->mutable_train()->set_format("tokens");
  out = json::parse(status_json(state, options, stats, {}, detail));
  EXPECT_EQ(out["predicts"], "tokens");
}

TEST(JobJson, HoldsEverySettingAndWhichAreNotTheDefault) {
  wire::JobSpec job;
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(0.1);  // sgd's default
  job.mutable_optimizer()->set_eps(1e-08);
  job.mutable_train()->set_epochs(5);
  std::map<std::string, json> settings;
  const json all = json::parse(job_json(job));
  for (const json& row : all["settings"]) settings[row["key"]] = row;
  EXPECT_EQ(settings["optimizer.lr"]["value"], "0.1");
  EXPECT_EQ(settings["optimizer.lr"]["changed"], false);
  EXPECT_EQ(settings["optimizer.name"]["changed"], true);
  EXPECT_EQ(settings["optimizer.eps"]["changed"], false);
  EXPECT_EQ(settings["train.epochs"]["value"], "5");
  EXPECT_EQ(settings["train.epochs"]["changed"], true);
  EXPECT_EQ(settings["train.global_batch"]["value"], "auto");
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
