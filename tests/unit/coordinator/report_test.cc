#include "coordinator/report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "coordinator/serve/observe.h"

namespace lockstep::coordinator {
namespace {

nlohmann::json status_of(const State& state) {
  Options options;
  options.shape = {50, 8, 3};
  options.total_steps = 70;
  return nlohmann::json::parse(status_json(state, options, {}, {}));
}

TEST(StatusReport, TellsOfSkippedSamplesAndOfATaintedLineage) {
  State state;
  EXPECT_EQ(status_of(state)["skipped_by_policy"], 0);
  EXPECT_FALSE(status_of(state).contains("tainted_from_step"));
  state.skips.push_back({1, 3, {1, 2}, "it killed two workers"});
  state.checks.tainted = 4;
  EXPECT_EQ(status_of(state)["skipped_by_policy"], 1);
  EXPECT_EQ(status_of(state)["tainted_from_step"], 4);
}

TEST(StatusReport, NamesTheBestEvaluationOfARunThatKeepsNoBestCheckpoint) {
  State state;
  EXPECT_FALSE(status_of(state).contains("best_evaluation"));
  state.evals[14] = {.step = 14, .samples = 100, .correct = 80, .loss = 0.25};
  state.evals[21] = {.step = 21, .samples = 100, .correct = 79, .loss = 0.5};
  EXPECT_EQ(status_of(state)["best_evaluation"]["step"], 14);
  EXPECT_EQ(status_of(state)["best_evaluation"]["accuracy"], 0.8);
}

// Else the alert on runs that are gone (deploy/prometheus/alerts.yml) fires after a good end.
TEST(Metrics, AScriptThatEndsTheRunHasPlannedTheStepsUntilThere) {
  Options options;
  options.shape = {50, 8, 3};
  options.total_steps = 70;
  options.job.mutable_train()->set_global_batch(8);
  State state;
  const auto planned = [&] {
    CoordinatorMetrics metrics("r", BuildInfo());
    observe_state(metrics, state, options);
    const std::string text = metrics.expose_text();
    const size_t at = text.find("\nlockstep_job_steps_planned{");
    return std::stod(text.substr(text.find("} ", at) + 2));
  };
  EXPECT_EQ(planned(), 70);
  state.script_end = ScriptEnd{30, 70};
  EXPECT_EQ(planned(), 30);
}

TEST(StatusReport, TellsWhereAWorkerWithAGpuIsBound) {
  State state;
  state.members[1].id = 1;
  EXPECT_FALSE(status_of(state)["members"][0].contains("numa"));
  state.members[1].gpu.set_numa("NUMA node 1: 32 cores and memory");
  EXPECT_EQ(status_of(state)["members"][0]["numa"], "NUMA node 1: 32 cores and memory");
}

// The options of an open term (decide/open_term.h) hold stand-ins.
TEST(StatusReport, SaysNoNumberThatOnlyTheWorkersKnow) {
  wire::JobSpec job;
  job.mutable_model()->set_name("script");
  job.mutable_train()->set_global_batch(8);
  job.mutable_train()->set_slots(4);
  job.mutable_train()->set_epochs(3);
  wire::DataFacts facts;
  facts.set_open(true);
  const auto status = [&] {
    return nlohmann::json::parse(status_json({}, make_options(job, facts, "/run"), {}, {}));
  };
  EXPECT_EQ(status()["total_steps"], 0);
  EXPECT_EQ(status()["steps_per_epoch"], 0);
  EXPECT_EQ(status()["epochs"], 3);
  EXPECT_EQ(status()["epoch"], 0);
  job.mutable_train()->set_max_steps(100);
  EXPECT_EQ(status()["epochs"], 0) << "which of the two ends the run, nobody knows yet";
  const auto summary =
      nlohmann::json::parse(summary_json({}, make_options(job, facts, "/run"), {}, {}));
  EXPECT_EQ(summary["epochs"], 0);
}

TEST(Discovery, NamesTheCoordinatorOneAgentOfANodeAndEveryLivingWorker) {
  State state;
  state.run_id = "r";
  state.agents[3].node = "n";
  state.agents[3].metrics_address = "127.0.0.1:3";
  state.agents[4] = state.agents[3];
  state.agents[4].metrics_address = "127.0.0.1:4";
  state.agents[5].node = "has no metrics";
  state.members[1].node = "n";
  state.members[1].local_rank = 2;
  state.members[1].metrics_address = "127.0.0.1:5";
  state.members[2] = state.members[1];
  state.members[2].state = MemberState::kDead;
  const auto found = nlohmann::json::parse(discovery_json(state, "127.0.0.1:1", false));
  EXPECT_EQ(found, nlohmann::json::parse(R"([
    {"targets": ["127.0.0.1:1"], "labels": {"run": "r"}},
    {"targets": ["127.0.0.1:3"], "labels": {"run": "r", "node": "n"}},
    {"targets": ["127.0.0.1:5"], "labels": {"run": "r", "node": "n", "local_rank": "2"}}])"));
  const auto secured = nlohmann::json::parse(discovery_json(state, "127.0.0.1:1", true));
  ASSERT_EQ(secured.size(), 3u);
  for (const auto& target : secured) EXPECT_EQ(target["labels"]["__scheme__"], "https");
}

}  // namespace
}  // namespace lockstep::coordinator
