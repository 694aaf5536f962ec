#include "worker/process/metrics_probe.h"

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
  MetricsProbe probe(metrics, phases, 1, place);
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
  MetricsProbe probe(metrics, phases, 1, place);
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

}  // namespace
}  // namespace lockstep
