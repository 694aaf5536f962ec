// Compares training with what PyTorch gave, to 1e-5 of each number.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/state_of.h"
#include "tests/unit/engine/loopback_world.h"

namespace lockstep::testing {

inline void expect_close(double got, double wanted, const std::string& what) {
  EXPECT_NEAR(got, wanted, 1e-6 + 1e-5 * std::abs(wanted)) << what;
}

inline std::map<std::string, std::vector<float>> weights_in(Engine& engine) {
  std::map<std::string, std::vector<float>> out;
  for (const StateTensor& t : state_of(engine)) {
    if (t.section != StateSection::kParameter) continue;
    auto& values = out[t.name];
    values.resize(t.bytes / sizeof(float));
    std::memcpy(values.data(), t.data, t.bytes);
  }
  return out;
}

template <typename Report>
void expect_same_metrics(const Report& report, const nlohmann::json& wanted,
                         const std::string& when) {
  ASSERT_EQ(static_cast<size_t>(report.metrics_size()), wanted.size()) << when;
  for (const wire::Metric& metric : report.metrics())
    expect_close(metric.value(), wanted.at(metric.name()), metric.name() + " " + when);
}

// Trains and evaluates in worlds of one to four, to the same bits. `golden`: what PyTorch gave:
// losses, metrics and correct by step, gradient_norms of the first, and eval. REQUIRES: plain SGD.
inline void expect_golden(const wire::JobSpec& job, const data::Dataset& dataset,
                          const nlohmann::json& golden) {
  std::string state;
  for (const uint32_t ranks : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    LoopbackWorld world(job, dataset, even_runs(4, ranks), 256, &dataset);
    world.begin_generation(golden["losses"].size());
    const auto before = weights_in(world.engine(0));
    for (size_t step = 0; step < golden["losses"].size(); ++step) {
      const std::string when = "in step " + std::to_string(step);
      const auto outcomes = world.step_all();
      ASSERT_TRUE(outcomes[0].is_ok()) << outcomes[0].status().message();
      const wire::StepRecord& record = outcomes[0]->record;
      expect_close(record.loss(), golden["losses"][step], "loss " + when);
      expect_same_metrics(record, golden["metrics"][step], when);
      if (!record.no_accuracy()) {
        EXPECT_EQ(record.correct(), golden["correct"][step].get<uint64_t>()) << when;
      }
      if (step > 0) continue;
      for (const auto& [name, wanted] : golden["gradient_norms"].items()) {
        double squares = 0;
        const auto after = weights_in(world.engine(0));
        for (size_t i = 0; i < before.at(name).size(); ++i)
          squares += std::pow(
              (double{before.at(name)[i]} - double{after.at(name)[i]}) / job.optimizer().lr(), 2);
        expect_close(std::sqrt(squares), wanted, "the gradient of " + name);
      }
    }
    for (const auto& evaluation : world.evaluate_all()) {
      ASSERT_TRUE(evaluation.is_ok()) << evaluation.status().message();
      expect_close(evaluation->loss(), golden["eval"]["loss"], "loss of the evaluation");
      expect_same_metrics(*evaluation, golden["eval"]["metrics"], "of the evaluation");
      EXPECT_EQ(evaluation->correct(), golden["eval"].value("correct", uint64_t{0}));
    }
    const std::string bytes = testing::state_bytes(world.engine(0), /*with_optimizer=*/true);
    if (state.empty()) state = bytes;
    EXPECT_TRUE(bytes == state) << "other bits than in the first world";
  }
}

}  // namespace lockstep::testing
