#include "worker/program/metrics_probe.h"

#include <gtest/gtest.h>

#include "comm/base/build_info.h"
#include "comm/base/clock.h"

namespace lockstep {
namespace {

TEST(MetricsProbe, CountsTheSamplesOfItsOwnSlotsAndNotOfTheWholeStep) {
  SystemClock clock;
  PhaseClock phases(clock);
  WorkerMetrics metrics({.run = "r", .node = "n", .local_rank = 0}, BuildInfo{}, phases, clock);
  LogPlace place("r");
  MetricsProbe probe(metrics, phases, wire::JobSpec(), place);
  wire::StepRecord record;
  for (uint32_t slot = 0; slot < 4; ++slot) {
    wire::SlotDigest& digest = *record.add_slots();
    digest.set_slot(slot);
    digest.set_samples(10 + slot);
  }
  const auto samples = [&metrics](const std::string& total) {
    return metrics.expose_text().find(
               "lockstep_samples_total{local_rank=\"0\",node=\"n\",run=\"r\"} " + total + "\n") !=
           std::string::npos;
  };
  probe.generation_started(1, 7, {.rank = 0, .world = 2, .slots = {0, 2}});
  probe.step_applied(record, {});
  EXPECT_TRUE(samples("21")) << metrics.expose_text();
  probe.generation_started(2, 7, {.rank = 1, .world = 2, .slots = {1, 4}});
  probe.step_applied(record, {});
  EXPECT_TRUE(samples("57")) << metrics.expose_text();
}

TEST(MetricsProbe, TellsTheLogWhereItStands) {
  SystemClock clock;
  PhaseClock phases(clock);
  WorkerMetrics metrics({.run = "r", .node = "n", .local_rank = 0}, BuildInfo{}, phases, clock);
  LogPlace place("r");
  MetricsProbe probe(metrics, phases, wire::JobSpec(), place);
  EXPECT_EQ(place.context().run, "r");
  EXPECT_FALSE(place.context().rank || place.context().step) << "it has no place yet";
  probe.generation_started(3, 7, {.rank = 2, .world = 4, .slots = {0, 2}});
  wire::StepRecord record;
  record.set_step(41);
  probe.step_applied(record, {});
  EXPECT_EQ(place.context().generation, 3u);
  EXPECT_EQ(place.context().rank, 2u);
  EXPECT_EQ(place.context().step, 42u) << "steps applied";
}

TEST(MetricsProbe, ShowsOfAnEvaluationWhatItHas) {
  SystemClock clock;
  PhaseClock phases(clock);
  WorkerMetrics metrics({.run = "r", .node = "n", .local_rank = 0}, BuildInfo{}, phases, clock);
  LogPlace place("r");
  wire::JobSpec job;
  MetricsProbe of_classes(metrics, phases, job, place);
  wire::EvalReport report;
  report.set_samples(10);
  report.set_correct(9);
  report.set_has_top5(true);
  report.set_top5(10);
  of_classes.evaluated(report);
  const auto shows = [&metrics](const std::string& name, const std::string& value) {
    return metrics.expose_text().find(name + "{local_rank=\"0\",node=\"n\",run=\"r\"} " + value +
                                      "\n") != std::string::npos;
  };
  EXPECT_TRUE(shows("lockstep_eval_accuracy_ratio", "0.9")) << metrics.expose_text();
  EXPECT_TRUE(shows("lockstep_eval_top5_ratio", "1"));
  EXPECT_FALSE(shows("lockstep_eval_perplexity", "1"));
  job.mutable_data()->mutable_train()->set_format("tokens");
  MetricsProbe of_tokens(metrics, phases, job, place);
  report.set_has_top5(false);
  of_tokens.evaluated(report);
  EXPECT_TRUE(shows("lockstep_eval_perplexity", "1")) << metrics.expose_text();
  EXPECT_FALSE(shows("lockstep_eval_top5_ratio", "1"));
}

}  // namespace
}  // namespace lockstep
