// Evaluations whose batches a function scores that stands for Python.
#include "worker/script/script_eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/collectives/loopback/loopback.h"
#include "comm/run/job/metric_names.h"
#include "comm/wire/resume_point.h"
#include "tests/support/fails_with.h"
#include "worker/engine/eval_scores.h"

namespace lockstep {
namespace {

const ScriptEvalFacts kFacts{
    .name = "", .samples = 23, .fingerprint = "f", .metrics = {"mean_index"}, .knows_right = true};
// After the first one.
const ScriptEvalFacts kOther{.name = "other",
                             .samples = 9,
                             .fingerprint = "g",
                             .metrics = {"mean_index"},
                             .knows_right = true};

wire::JobSpec job_of() {
  wire::JobSpec job;
  job.set_seed(3);
  job.mutable_train()->set_eval_batch(4);
  return job;
}

struct Asked {
  uint32_t evaluation = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t share_end = 0;
  uint32_t seed = 0;
};

// All ranks of a world evaluate, each on a thread of its own.
class World {
 public:
  explicit World(uint32_t ranks, ScriptEvals evals = {kFacts})
      : asked(ranks), scored(ranks), reports(ranks, Result<wire::EvalReport>(wire::EvalReport())) {
    std::vector<std::unique_ptr<GradientBuffer>> buffers;
    std::vector<GradientBuffer*> raw;
    for (uint32_t r = 0; r < ranks; ++r) {
      buffers.push_back(make_plain_buffer({16, 16, 16}, 1));
      raw.push_back(buffers.back().get());
    }
    const auto collectives = make_loopback(1, raw);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        GenerationView view;
        view.generation = 1;
        view.collective = collectives[r].get();
        view.has_scored = [this, r] { ++scored[r]; };
        reports[r] = evaluate_script(evals, job_of(), view, 5,
                                     [&](const ls_order& order) { return score(r, order); });
        if (!reports[r].is_ok()) collectives[r]->abort();
      });
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::vector<Asked>> asked;  // by rank
  std::vector<uint32_t> scored;           // batches, as heartbeats would tell
  std::vector<Result<wire::EvalReport>> reports;

 private:
  // The second half of a batch counts, and one of it is right.
  Result<ls_reply> score(uint32_t rank, const ls_order& order) {
    EXPECT_EQ(order.kind, LS_EVAL);
    EXPECT_EQ(order.step, 5U);
    const ls_task& task = order.task;
    asked[rank].push_back({order.evaluation, task.begin, task.end, order.share_end, task.seed});
    ls_reply reply{};
    reply.loss = 1.0 / static_cast<double>(task.begin + 3);
    reply.count = (task.end - task.begin) / 2;
    reply.correct = reply.count > 0 ? 1 : 0;
    metric_[rank] = static_cast<double>(task.begin + task.end - 1) / 2;
    reply.metrics = &metric_[rank];
    return reply;
  }

  double metric_[8] = {};
};

TEST(ScriptEval, EveryWorldHasTheSameReport) {
  const World alone(1);
  ASSERT_TRUE(alone.reports[0].is_ok()) << alone.reports[0].status().message();
  const wire::EvalReport& report = *alone.reports[0];
  EXPECT_EQ(report.step(), 5U);
  EXPECT_EQ(report.samples(), 11U) << "two of each of five batches, and one of the last";
  EXPECT_EQ(report.correct(), 6U);
  EXPECT_FALSE(report.no_accuracy());
  ASSERT_EQ(report.metrics_size(), 1);
  EXPECT_DOUBLE_EQ(report.metrics(0).value(), 11.0) << "the mean of 0 to 22";
  double sum = 0;
  for (const uint64_t begin : {0, 4, 8, 12, 16, 20})
    sum += (begin == 20 ? 1.0 : 2.0) / static_cast<double>(begin + 3);
  EXPECT_DOUBLE_EQ(report.loss(), sum / 11);
  for (const uint32_t ranks : {2U, 3U, 7U}) {
    const World world(ranks);
    for (const auto& other : world.reports)
      EXPECT_EQ(other->SerializeAsString(), report.SerializeAsString()) << ranks;
  }
}

TEST(ScriptEval, BatchesAndSeedsAreThoseOfTheData) {
  const World alone(1);
  const World world(4);  // two batches each, and none for the last
  std::vector<Asked> all;
  for (const auto& of_rank : world.asked) {
    for (const Asked& asked : of_rank) {
      all.push_back(asked);
      EXPECT_EQ(asked.share_end, of_rank.back().end);
    }
  }
  EXPECT_TRUE(world.asked[3].empty());
  ASSERT_EQ(all.size(), alone.asked[0].size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].begin, alone.asked[0][i].begin);
    EXPECT_EQ(all[i].end, alone.asked[0][i].end);
    EXPECT_EQ(all[i].seed, alone.asked[0][i].seed);
    if (i > 0) {
      EXPECT_NE(all[i].seed, all[i - 1].seed);
    }
  }
}

TEST(ScriptEval, OtherEvaluationsAreMetricsOfTheFirst) {
  const World first(1);
  const World world(3, {kFacts, kOther});
  const wire::EvalReport& report = *world.reports[0];
  for (const auto& other : world.reports)
    EXPECT_EQ(other->SerializeAsString(), report.SerializeAsString());
  wire::EvalReport of_first = report;
  of_first.mutable_metrics()->DeleteSubrange(1, 3);
  EXPECT_EQ(of_first.SerializeAsString(), first.reports[0]->SerializeAsString())
      << "the first one is as it is alone";
  ASSERT_EQ(report.metrics_size(), 4);
  std::vector<std::pair<std::string, double>> found;
  for (int i = 1; i < 4; ++i)
    found.emplace_back(report.metrics(i).name(), report.metrics(i).value());
  // Two samples of each of its two whole batches count, and none of the last.
  EXPECT_THAT(found,
              ::testing::ElementsAre(
                  ::testing::Pair("other/loss", ::testing::DoubleEq((1.0 / 3 + 1.0 / 7) / 2)),
                  ::testing::Pair("other/accuracy", ::testing::DoubleEq(2.0 / 4)),
                  ::testing::Pair("other/mean_index", ::testing::DoubleEq(4))));
}

TEST(ScriptEval, EachEvaluationHasSeedsOfItsOwnAndEveryScoredBatchIsHeard) {
  const World world(2, {kFacts, kOther});
  std::set<uint32_t> seeds;
  size_t asked = 0;
  for (const auto& of_rank : world.asked)
    for (const Asked& each : of_rank) {
      EXPECT_LE(each.end, each.evaluation == 0 ? kFacts.samples : kOther.samples);
      seeds.insert(each.seed);
      ++asked;
    }
  EXPECT_EQ(asked, 6u + 3u);
  EXPECT_EQ(seeds.size(), asked);
  EXPECT_THAT(world.scored, ::testing::ElementsAre(3 + 2, 3 + 1)) << "batches of both";
}

TEST(ScriptEval, WhatAReportWouldNotHoldIsRefused) {
  ScriptEvalFacts other = kOther;
  const auto checked = [&](ScriptEvalFacts first = kFacts) {
    return check_script_evals({std::move(first), other}, job_of());
  };
  EXPECT_TRUE(checked().is_ok());
  ScriptEvalFacts first = kFacts;
  first.metrics = {"other/loss"};
  EXPECT_THAT(checked(first),
              FailsWith(Code::kUsage, Names("other/loss"), Advises("another name")));
  other.metrics = {"accuracy"};
  EXPECT_THAT(checked(), FailsWith(Code::kUsage, Names("other/accuracy")));
  other.metrics = {std::string(kMetricNameBytes - 6, 'm')};
  EXPECT_TRUE(checked().is_ok());
  other.metrics.front() += "m";
  EXPECT_THAT(checked(), FailsWith(Code::kUsage, Says("longer than 64 bytes"), Names("\"other\"")));
  other.metrics.clear();
  for (int i = 0; i < 12; ++i) other.metrics.push_back("m" + std::to_string(i));
  EXPECT_THAT(checked(), FailsWith(Code::kUsage, Names("\"other\""), Says("leave some out")));
  other.metrics.pop_back();
  first.metrics.assign(other.metrics.begin(), other.metrics.end());
  EXPECT_TRUE(checked(first).is_ok()) << "11, and 11 with loss and accuracy";
  ScriptEvalFacts third = kOther;
  third.name = "third";
  third.metrics.clear();
  EXPECT_THAT(check_script_evals({first, other, third}, job_of()),
              FailsWith(Code::kUsage, Says("26 numbers"), Advises("leave some")));
  other.samples = ~uint64_t{0};
  EXPECT_THAT(checked(), FailsWith(Code::kUsage, Advises("train.eval_batch")));
  wire::JobSpec job = job_of();
  job.mutable_checkpoint()->set_best("accuracy");
  first.knows_right = false;
  EXPECT_THAT(check_script_evals({first, kOther}, job),
              FailsWith(Code::kUsage, Names("checkpoint.best")))
      << "the first one decides";
}

TEST(ScriptEval, AFailureOrNothingThatCountsIsSaid) {
  std::unique_ptr<GradientBuffer> buffer = make_plain_buffer({16, 16, 16}, 1);
  const auto collectives = make_loopback(1, {buffer.get()});
  GenerationView view;
  view.generation = 1;
  view.collective = collectives[0].get();
  const auto evaluate = [&](const Result<ls_reply>& reply) {
    return evaluate_script({kFacts}, job_of(), view, 5, [&](const ls_order&) { return reply; });
  };
  EXPECT_THAT(evaluate(Status(Code::kBadData, "planted")),
              FailsWith(Code::kBadData, Says("planted")));
  double metric = 0;
  ls_reply reply{};
  reply.metrics = &metric;
  EXPECT_THAT(evaluate(reply), FailsWith(Code::kBadData, Says("counted nothing")));
  reply.correct = 1;
  EXPECT_THAT(evaluate(reply), FailsWith(Code::kInternal, Says("malformed")));
}

TEST(ScriptEval, TheJobsDataAreNamedFoundOrNowhere) {
  wire::DataSpec data;
  EXPECT_EQ(where_eval_data_are(data), "");
  data.mutable_train()->set_path("d");
  EXPECT_EQ(where_eval_data_are(data), "");
  data.mutable_eval()->set_path("e");
  EXPECT_EQ(where_eval_data_are(data), "named");
  data.mutable_eval()->set_path("d");
  EXPECT_EQ(where_eval_data_are(data), "found");
  data.mutable_eval()->clear_path();
  data.set_holdout(0.1);
  EXPECT_EQ(where_eval_data_are(data), "found");
}

TEST(ScriptEval, KeysThatAskForWhatTheScriptDoesNotGiveAreRefused) {
  EXPECT_TRUE(check_script_evals({}, job_of()).is_ok());
  wire::JobSpec job = job_of();
  job.mutable_data()->mutable_train()->set_path("d");
  job.mutable_data()->mutable_eval()->set_path("d");
  EXPECT_TRUE(check_script_evals({}, job).is_ok()) << "they were found, not named";
  job.mutable_data()->mutable_eval()->set_path("e");
  EXPECT_THAT(check_script_evals({}, job),
              FailsWith(Code::kUsage, Names("data.eval.path is e"), Advises("run.evaluate")));
  job.mutable_train()->set_patience(2);
  EXPECT_THAT(check_script_evals({}, job),
              FailsWith(Code::kUsage, Names("train.patience is 2"), Advises("run.evaluate")));
  job.mutable_checkpoint()->set_best("accuracy");
  EXPECT_THAT(check_script_evals({}, job), FailsWith(Code::kUsage, Names("checkpoint.best")));
  job.mutable_eval()->set_every_steps(4);
  EXPECT_THAT(check_script_evals({}, job), FailsWith(Code::kUsage, Names("eval.every_steps is 4")));
  EXPECT_TRUE(check_script_evals({kFacts}, job).is_ok());
  ScriptEvalFacts facts = kFacts;
  facts.knows_right = false;
  EXPECT_THAT(check_script_evals({facts}, job),
              FailsWith(Code::kUsage, Names("checkpoint.best"), Advises("\"correct\"")));
  facts = kFacts;
  facts.metrics.resize(kMostMetrics + 1);
  EXPECT_THAT(check_script_evals({facts}, job), FailsWith(Code::kUsage, Says("leave some out")));
  facts.metrics = {"fine", "F1@0.5"};
  EXPECT_THAT(check_script_evals({facts}, job),
              FailsWith(Code::kUsage, Names("F1@0.5"), Says("letters")));
  facts = kFacts;
  facts.samples = uint64_t{4} << 21;
  EXPECT_TRUE(check_script_evals({facts}, job).is_ok());
  facts.samples = ~uint64_t{0};
  EXPECT_THAT(check_script_evals({facts}, job),
              FailsWith(Code::kUsage, Advises("train.eval_batch")));
}

}  // namespace
}  // namespace lockstep
