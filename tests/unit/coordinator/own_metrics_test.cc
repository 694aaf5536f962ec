// Metrics of a model's own, and losses that know no right predictions: in the journal, in the files
// derived from it, and in what people and tools are told.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "coordinator/journal/eval_file.h"
#include "coordinator/journal/history.h"
#include "coordinator/journal/journal_chain.h"
#include "coordinator/journal/journal_schema.h"
#include "coordinator/report/report.h"
#include "coordinator/report/watch_json.h"
#include "coordinator/state/identity.h"
#include "tests/unit/coordinator/journal_world.h"

namespace lockstep::coordinator {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<MetricValue> kMetrics = {{"hit", 0.25}, {"iou/mean", 0.5}};

StepEntry with_metrics(Step step) {
  StepEntry entry = step_entry(1, step, 2.5);
  entry.no_accuracy = true;
  entry.metrics = kMetrics;
  return entry;
}

EvalEntry eval_with_metrics() {
  EvalEntry entry{1, 2, 0, 100, 0, 0.5};
  entry.lr = 0.001;
  entry.no_accuracy = true;
  entry.metrics = kMetrics;
  return entry;
}

std::vector<StepEntry> steps_of(Journal& journal) {
  std::vector<StepEntry> steps;
  const auto add = [&](const StepEntry& step) { steps.push_back(step); };
  EXPECT_TRUE(journal.visit_steps(0, 10, add).is_ok());
  return steps;
}

void expect_metrics_in(Journal& journal) {
  const std::vector<StepEntry> steps = steps_of(journal);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].metrics.empty() && !steps[0].no_accuracy);
  EXPECT_EQ(steps[1].metrics, kMetrics);
  EXPECT_TRUE(steps[1].no_accuracy);
  const auto contents = journal.load();
  ASSERT_EQ(contents->evals.size(), 1u);
  EXPECT_EQ(contents->evals[0].metrics, kMetrics);
  EXPECT_TRUE(contents->evals[0].no_accuracy);
}

std::vector<JournalEntry> entries() {
  return {LedgerEntry{{1, {0, Phase::kTrain}, std::nullopt, false, "start"}}, step_entry(1, 0, 2),
          with_metrics(1), eval_with_metrics()};
}

using OwnMetricsTest = JournalTest;

TEST_F(OwnMetricsTest, AreInTheJournalAfterReopening) {
  check_all([](Journal& journal) {
    commit(journal, entries());
    expect_metrics_in(journal);
  });
  expect_metrics_in(*open());
}

// A journal of version 5, with one step.
void make_version_5(const std::string& path) {
  auto opened = Database::open(path);
  Database& database = **opened;
  const std::string tables = std::string(kJournalSchema) + kEvalReportsTable;
  ASSERT_TRUE(database.execute("BEGIN IMMEDIATE;" + tables + "PRAGMA user_version=5").is_ok());
  ASSERT_TRUE(JournalChain::create(database).is_ok());
  ASSERT_TRUE(database.execute("COMMIT").is_ok());
  const auto chain = std::move(JournalChain::open(database)).value();
  ASSERT_TRUE(chain->watch().is_ok());
  ASSERT_TRUE(database
                  .execute("BEGIN IMMEDIATE; INSERT INTO steps VALUES(0,1,0,4,0,2.0,0.1,0,9,7); "
                           "INSERT INTO ledger VALUES(1,0,0,NULL,NULL,0,'start')")
                  .is_ok());
  ASSERT_TRUE(chain->advance().is_ok());
  ASSERT_TRUE(database.execute("COMMIT").is_ok());
}

TEST_F(OwnMetricsTest, AJournalOfTheVersionBeforeIsReadAndGetsWhatItLacks) {
  make_version_5(path_);
  const auto reading = read_sqlite_journal(path_);
  ASSERT_TRUE(reading.is_ok()) << reading.status().message();
  EXPECT_EQ(steps_of(**reading).size(), 1u);
  const JournalMark before = peek_journal(path_)->mark;
  std::string told;
  SqliteJournalOptions options;
  options.on_upgrade = [&told](const std::string& what) { told += what; };
  {
    const auto journal = open(options);
    EXPECT_THAT(told, HasSubstr(path_));
    EXPECT_THAT(told, HasSubstr("metrics"));
    EXPECT_THAT(told, Not(HasSubstr("top-5")));
    EXPECT_EQ(journal->mark().digest, before.digest);  // no row has changed
    commit(*journal, {with_metrics(1), eval_with_metrics()});
  }
  told.clear();
  expect_metrics_in(*open(options));  // its checksum holds
  EXPECT_EQ(told, "");
}

TEST_F(OwnMetricsTest, StandInTheLinesOfHistoryAndAreReadBack) {
  EXPECT_EQ(history_line(step_entry(1, 0, 2)),
            "{\"step\":1,\"epoch\":0,\"loss\":2,\"lr\":0,"
            "\"samples\":4}\n");
  const std::string line = history_line(with_metrics(0));
  EXPECT_THAT(line, HasSubstr(",\"samples\":4,\"metrics\":{\"hit\":0.25,\"iou/mean\":0.5}}\n"));
  const std::string path = dir_ + "/history.jsonl";
  std::ofstream(path) << line;
  const auto steps = read_history(path, 5);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].metrics, kMetrics);
  EXPECT_EQ(steps[0].samples, 4u);
}

TEST(OwnMetrics, AnEvaluationWithoutRightPredictionsHasNoAccuracy) {
  EXPECT_EQ(eval_line(eval_with_metrics(), false),
            "{\"step\":2,\"epoch\":0,\"loss\":0.5,\"samples\":100,\"lr\":0.001,"
            "\"metrics\":{\"hit\":0.25,\"iou/mean\":0.5}}\n");
  const json out = json::parse(history_json({}, {{2, eval_with_metrics()}}, 1, 10));
  EXPECT_TRUE(out["evals"]["accuracy"][0].is_null());
  EXPECT_EQ(out["evals"]["metrics"]["hit"], json({0.25}));
}

TEST(OwnMetrics, StatusAndSummarySayWhatThereIs) {
  State state;
  state.evals[2] = eval_with_metrics();
  Options options;
  options.shape = {50, 8, 3};
  options.total_steps = 70;
  RunStats stats;
  stats.add(with_metrics(0));
  const json summary = json::parse(summary_json(state, options, stats, {}));
  EXPECT_FALSE(summary.contains("eval_accuracy"));
  EXPECT_EQ(summary["eval_metrics"]["iou/mean"], 0.5);
  const json status = json::parse(status_json(state, options, stats, {}));
  EXPECT_FALSE(status.contains("accuracy"));
  EXPECT_FALSE(status["eval"].contains("accuracy"));
  EXPECT_EQ(status["metrics"]["hit"], 0.25);
  stats.add(step_entry(1, 1, 2));
  EXPECT_TRUE(json::parse(status_json(state, options, stats, {})).contains("accuracy"));
}

// Jobs of before the key have none, and go on with that.
TEST(OwnMetrics, OnlyAnotherLossThanCrossEntropyIdentifiesARun) {
  const auto loss_in = [](const std::string& loss) {
    wire::JobSpec job;
    job.mutable_train()->set_loss(loss);
    std::string found;
    for (const IdentityEntry& entry : identity_of(job, {}))
      if (entry.key == "train.loss") found = entry.value;
    return found;
  };
  EXPECT_EQ(loss_in(""), "");
  EXPECT_EQ(loss_in("cross_entropy"), "");
  EXPECT_EQ(loss_in("mse"), "mse");
}

}  // namespace
}  // namespace lockstep::coordinator
