#include "tests/unit/metrics/exporters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <regex>
#include <thread>
#include <vector>

#include "comm/base/limits.h"
#include "tests/unit/metrics/exposition.h"

namespace lockstep::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

const char kTarget[] = R"({local_rank="1",node="n1",run="r1"})";

double value(WorkerMetrics& metrics, const std::string& series) {
  const ExposedFamilies families = parse_exposition(metrics.expose_text());
  for (const auto& [name, family] : families) {
    if (family.series.contains(series)) return family.series.at(series);
  }
  ADD_FAILURE() << "no series " << series;
  return -1;
}

TEST(WorkerMetrics, ExportsAtMostSixtyFourSeries) {
  BusyWorker worker;
  everything_happens(worker);
  EXPECT_LE(count_series(parse_exposition(worker.metrics.expose_text())), WorkerMetrics::kSeries);
}

TEST(WorkerMetrics, CountsStepsAndSamplesAndShowsTheirRate) {
  BusyWorker worker;
  worker.train(500);
  EXPECT_EQ(value(worker.metrics, std::string("lockstep_steps_total") + kTarget), 500);
  EXPECT_EQ(value(worker.metrics, std::string("lockstep_step") + kTarget), 500);
  EXPECT_EQ(value(worker.metrics, std::string("lockstep_samples_total") + kTarget), 50'000);
  // 100 samples every 10 ms.
  EXPECT_NEAR(value(worker.metrics, std::string("lockstep_samples_per_second") + kTarget), 10'000,
              100);
}

TEST(WorkerMetrics, UtilizationIsTheShareOfTimeSpentComputing) {
  BusyWorker worker;
  worker.train(500);  // 8 of 10 ms
  const std::string series = std::string("lockstep_utilization_ratio") + kTarget;
  EXPECT_NEAR(value(worker.metrics, series), 0.8, 0.01);
  worker.spend(WorkPhase::kIdle, 100'000);
  EXPECT_NEAR(value(worker.metrics, series), 0, 0.01);
}

TEST(WorkerMetrics, PhasesAddUpToTheWallTime) {
  BusyWorker worker;
  const int64_t begin_ns = worker.clock.now_ns;
  worker.train(100);
  worker.spend(WorkPhase::kCheckpoint, 250);
  const ExposedFamilies families = parse_exposition(worker.metrics.expose_text());
  double sum = 0;
  for (const auto& [series, seconds] : families.at("lockstep_phase_seconds_total").series) {
    sum += seconds;
  }
  EXPECT_NEAR(sum, static_cast<double>(worker.clock.now_ns - begin_ns) / 1e9, 1e-9);
  EXPECT_NEAR(value(worker.metrics, std::string("lockstep_data_wait_seconds_total") + kTarget), 0.1,
              1e-9);
}

TEST(WorkerMetrics, FarDataAreCountedWhereThereAreSome) {
  BusyWorker worker;
  EXPECT_EQ(parse_exposition(worker.metrics.expose_text()).count("lockstep_far_data_reads_total"),
            0u);
  FarDataCounts counts{90, 10, 1'000, 0.5, 800};
  worker.metrics.far_data().watch([&] { return counts; });
  worker.metrics.expose_text();
  counts.reads_near = 95;
  counts.kept_bytes = 700;
  const auto families = parse_exposition(worker.metrics.expose_text());
  EXPECT_EQ(
      families.at("lockstep_far_data_reads_total").series,
      (std::map<std::string, double>{
          {R"(lockstep_far_data_reads_total{local_rank="1",node="n1",run="r1",from="cache"})", 95},
          {R"(lockstep_far_data_reads_total{local_rank="1",node="n1",run="r1",from="source"})",
           10}}));
  EXPECT_EQ(value(worker.metrics, std::string("lockstep_far_data_cache_bytes") + kTarget), 700);
  EXPECT_EQ(value(worker.metrics, std::string("lockstep_far_data_fetch_seconds_total") + kTarget),
            0.5);
}

TEST(WorkerMetrics, ANewRankReplacesTheOldOneInMemberInfoAndNowhereElse) {
  BusyWorker worker;
  worker.metrics.member().started(1, 7, 1, 2);
  worker.metrics.member().started(2, 7, 0, 1);
  const ExposedFamilies families = parse_exposition(worker.metrics.expose_text());
  EXPECT_EQ(
      families.at("lockstep_member_info").series,
      (std::map<std::string, double>{
          {R"(lockstep_member_info{local_rank="1",node="n1",run="r1",member="7",rank="0"})", 1}}));
  for (const auto& [name, family] : families) {
    EXPECT_EQ(family.labels.contains("rank"), name == "lockstep_member_info") << name;
  }
}

TEST(WorkerMetrics, EverySeriesCarriesTheTargetLabels) {
  BusyWorker worker;
  everything_happens(worker);
  for (const auto& [name, family] : parse_exposition(worker.metrics.expose_text())) {
    EXPECT_THAT(family.labels, IsSupersetOf({"run", "node", "local_rank"})) << name;
  }
}

TEST(WorkerMetrics, CountersNeverFallWhileTwoScrapeAndOneTrains) {
  SystemClock clock;
  PhaseClock phases(clock);
  WorkerMetrics metrics({.run = "r", .node = "n", .local_rank = 0}, build_info(), phases, clock);
  std::atomic<bool> done = false;
  const auto scrape = [&] {
    double last = 0;
    while (!done) {
      const ExposedFamilies families = parse_exposition(metrics.expose_text());
      double sum = 0;
      for (const auto& [series, s] : families.at("lockstep_phase_seconds_total").series) sum += s;
      EXPECT_GE(sum, last);
      last = sum;
    }
  };
  std::thread first(scrape), second(scrape);
  for (Step step = 1; step <= 2'000; ++step) {
    phases.switch_to(step % 2 == 0 ? WorkPhase::kForward : WorkPhase::kBackward);
    metrics.step_applied({.steps_applied = step, .own_samples = 1, .seconds = 1e-4});
    metrics.member().started(step, 1, 0, 1);
  }
  done = true;
  first.join();
  second.join();
}

TEST(CoordinatorMetrics, AStateThatNobodyIsInAnyMoreShowsZero) {
  CoordinatorMetrics metrics("r1", build_info());
  metrics.membership().members({{"registered", 2}});
  metrics.membership().members({{"active", 2}});
  const auto series = parse_exposition(metrics.expose_text()).at("lockstep_job_members").series;
  EXPECT_EQ(series.at(R"(lockstep_job_members{run="r1",state="registered"})"), 0);
  EXPECT_EQ(series.at(R"(lockstep_job_members{run="r1",state="active"})"), 2);
}

TEST(CoordinatorMetrics, ARollbackLowersTheStepAndNoCounter) {
  CoordinatorMetrics metrics("r1", build_info());
  for (Step step = 1; step <= 5; ++step) {
    metrics.job().step_recorded({.steps_applied = step, .samples = 10, .seconds = 0.1});
  }
  metrics.job().rolled_back(3);
  const ExposedFamilies families = parse_exposition(metrics.expose_text());
  EXPECT_EQ(families.at("lockstep_job_step").series.at(R"(lockstep_job_step{run="r1"})"), 3);
  EXPECT_EQ(families.at("lockstep_job_samples_total").series.begin()->second, 50);
}

TEST(CoordinatorMetrics, WhatIsNotKnownLatelyIsNotThere) {
  CoordinatorMetrics metrics("r1", build_info());
  const auto of = [&](const std::string& name) {
    const ExposedFamilies families = parse_exposition(metrics.expose_text());
    const auto found = families.find(name);
    return found == families.end() || found->second.series.empty()
               ? -1
               : found->second.series.begin()->second;
  };
  metrics.job().lately(0, {.samples_per_second = 7, .loss = {}, .utilization = 0.5});
  metrics.job().lately(1, {.samples_per_second = 9, .loss = 2, .utilization = 0.8});
  EXPECT_EQ(of("lockstep_job_recent_samples_per_second"), 7);
  EXPECT_EQ(of("lockstep_job_samples_per_second"), 9);
  EXPECT_EQ(of("lockstep_job_recent_loss"), -1);
  EXPECT_EQ(of("lockstep_job_minute_loss"), 2);
  EXPECT_EQ(of("lockstep_job_recent_utilization_ratio"), 0.5);
  EXPECT_EQ(of("lockstep_job_utilization_ratio"), 0.8);
  metrics.job().lately(0, {});
  EXPECT_EQ(of("lockstep_job_recent_samples_per_second"), -1);
}

// The series that a Prometheus has to keep must not grow with the job.
TEST(CoordinatorMetrics, TenThousandRanksAddFewSeries) {
  CoordinatorMetrics metrics("r1", build_info());
  everything_happens(metrics);
  std::vector<RankSample> ranks;
  for (uint32_t i = 0; i < 10'000; ++i)
    ranks.push_back({i, "n" + std::to_string(i / 8), i % 8, {0.01, 0.1}, {0.01, 0.1}, 1.0});
  metrics.ranks().show(ranks);
  const size_t many = count_series(parse_exposition(metrics.expose_text()));
  metrics.ranks().show({});
  const size_t none = count_series(parse_exposition(metrics.expose_text()));
  EXPECT_EQ(many - none, 5 * (limits::kWorstRanksShown + 3)) << "of each family, and three of all";
}

TEST(ProcessProbe, KnowsThisProcess) {
  const std::optional<ProcessUsage> usage = read_process_usage();
  ASSERT_TRUE(usage.has_value());
  EXPECT_GT(usage->resident_bytes, 1'000'000);
  EXPECT_GE(usage->threads, 1);
  EXPECT_GE(usage->open_files, 3);
  const double now = static_cast<double>(SystemClock().wall_ms()) / 1e3;
  EXPECT_NEAR(usage->start_time_seconds, now, 130);  // a test lives 120 s at most
}

}  // namespace
}  // namespace lockstep::test
