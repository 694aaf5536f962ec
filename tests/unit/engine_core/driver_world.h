// Ranks in one process whose model is numbers made of weights, step and slot.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/prng.h"
#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "worker/engine/step_driver.h"
#include "worker/model/spec.h"

namespace lockstep::driver_world {

inline constexpr uint32_t kSlots = 5;

inline ModelLayout two_layers() {
  LayoutBuilder builder;
  builder.add_linear("fc1", 30, 20);
  builder.add_linear("fc2", 20, 3);
  return builder.take();
}

// Its state is one flat vector. Gradients round when they are added, so an order would show.
class NumberComputer final : public SlotComputer {
 public:
  explicit NumberComputer(const FlatLayout& layout)
      : weights(layout.buffer.gradients, 1.0f), layout_(layout) {}

  Step applied_steps() const override { return applied; }
  double lr(Step) const override { return 0.1; }
  uint64_t step_labels(const StepPlan&, Step, uint64_t samples) override { return samples; }

  Result<std::optional<uint64_t>> compute(const SlotTask& task, SlotPort& port) override {
    computed.push_back(task.slot);
    in_hand.computes(task.step, task.slot);
    if (fails_in && *fails_in == task.slot) return Status(Code::kBadData, "a planted failure");
    LOCKSTEP_RETURN_IF_ERROR(port.open());
    fill(task, port.region());
    if (port.on_ready())
      for (uint32_t i = 0; i < layout_.parameters.size(); ++i) port.on_ready()(i);
    if (!task.wants_hash) return std::optional<uint64_t>();
    return std::optional(hash_gradients(layout_, port.region()));
  }

  Result<uint64_t> compute_again(const SlotTask& task) override {
    if (fails_again) return Status(Code::kInternal, "a planted failure");
    std::vector<float> region(layout_.buffer.elements);
    fill(task, region.data());
    ++again;
    return hash_gradients(layout_, region.data());
  }

  Result<bool> are_finite(const StepSums&) override { return true; }

  Result<bool> apply(const StepSums& sums, uint32_t, double lr) override {
    EXPECT_TRUE(is_gate_taken);
    if (fails_to_apply) return Status(Code::kInternal, "a planted failure");
    if (skips) {  // as where sums are no numbers
      ++applied;
      return false;
    }
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] -= static_cast<float>(lr) * sums.on_host[i];
    ++applied;
    return true;
  }
  bool ends_here() const override { return applied == ends_at; }
  Status pass_over() override {
    EXPECT_TRUE(is_gate_taken);
    ++applied;
    return Status::ok();
  }
  Result<uint64_t> state_hash() override {
    CheckHash hash;
    hash.update(weights.data(), weights.size() * sizeof(float));
    return hash.value();
  }

  std::vector<float> weights;
  Step applied = 0;
  std::vector<uint32_t> computed;  // slots, one after another
  uint32_t again = 0;
  std::optional<uint32_t> fails_in;  // a slot
  bool fails_again = false;
  bool fails_to_apply = false;
  bool skips = false;
  bool is_gate_taken = false;
  Step ends_at = 0;               // the script ends the run there
  std::vector<Step> told_to_end;  // the gate, while it was taken
  WorkInHand in_hand = WorkInHand::make().value();

 private:
  void fill(const SlotTask& task, float* region) const {
    const uint64_t key = stream_key({task.step, task.slot});
    std::fill_n(region, layout_.buffer.elements, 0.0f);
    for (const FlatTensor& tensor : layout_.parameters)
      for (uint64_t i = tensor.begin; i < tensor.end(); ++i)
        region[i] = weights[i] * static_cast<float>(stream_value(key, i) % 1'000'003) * 1e-6f;
    float* control = region + layout_.buffer.statistics;
    control[kControlLoss] = region[0] / static_cast<float>(task.step_labels);
    control[kControlCorrect] = static_cast<float>(task.slot);
    control[kControlMetrics] = region[1];
    put_digest(control, task.slot, key);
  }

  const FlatLayout& layout_;
};

inline wire::JobSpec job_of(uint32_t check_every) {
  wire::JobSpec job;
  job.mutable_train()->set_check_every(check_every);
  job.mutable_train()->set_slots(kSlots);
  job.mutable_comm()->set_numerics("exact");
  return job;
}

struct Rank {
  Rank(const wire::JobSpec& job, const RunShape& shape, const FlatLayout& layout)
      : computer(layout),
        driver(job, shape, layout, {.metrics = {"first"}}, computer),
        buffer(make_plain_buffer(layout.buffer, regions_needed(kSlots, kSlots))) {}

  StepGate gate() {
    return {.try_enter =
                [this] {
                  computer.is_gate_taken = is_open;
                  return is_open;
                },
            .end_here =
                [this] {
                  EXPECT_TRUE(computer.is_gate_taken);
                  computer.told_to_end.push_back(computer.applied);
                },
            .leave = [this] { computer.is_gate_taken = false; }};
  }

  NumberComputer computer;
  StepDriver driver;
  std::unique_ptr<GradientBuffer> buffer;
  SystemClock clock;
  PhaseClock phases{clock, WorkPhase::kOther};
  bool is_open = true;
  std::vector<StepOutcome> outcomes;
  Status last;
};

class DriverWorld {
 public:
  DriverWorld(const std::vector<SlotRun>& runs, const SkipSet& skips = {}, uint32_t check_every = 0)
      : job_(job_of(check_every)) {
    std::vector<GradientBuffer*> raw;
    for (size_t r = 0; r < runs.size(); ++r) {
      ranks.push_back(std::make_unique<Rank>(job_, shape_, layout_));
      raw.push_back(ranks.back()->buffer.get());
    }
    collectives_ = make_loopback(1, raw);
    for (size_t r = 0; r < runs.size(); ++r) {
      Rank& rank = *ranks[r];
      GenerationView view;
      view.generation = 1;
      view.collective = collectives_[r].get();
      view.slot_runs = runs;
      view.bucket_bounds =
          plan_buckets(layout_.tensor_bounds(), layout_.buffer.elements, 256).value();
      view.total_steps = 100;
      view.skips = skips;
      view.phases = &rank.phases;
      view.in_hand = &rank.computer.in_hand;
      EXPECT_TRUE(rank.driver.begin_generation(view, rank.gate(), *rank.buffer, {}).is_ok());
    }
  }
  ~DriverWorld() {
    for (const auto& collective : collectives_) collective->abort();
    for (const auto& rank : ranks) rank->driver.end_generation();
  }

  // Every rank on a thread of its own, up to its first error, after which it aborts the others.
  DriverWorld& run(Step steps) {
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r) {
      threads.emplace_back([this, r, steps] {
        Rank& rank = *ranks[r];
        for (Step t = 0; t < steps && rank.last.is_ok(); ++t) {
          auto outcome = rank.driver.step();
          rank.last = outcome.status();
          if (outcome.is_ok())
            rank.outcomes.push_back(std::move(*outcome));
          else
            collectives_[r]->abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return *this;
  }

  std::vector<uint64_t> hashes(size_t rank) const {
    std::vector<uint64_t> all;
    for (const StepOutcome& outcome : ranks[rank]->outcomes)
      all.push_back(outcome.record.common_hash());
    return all;
  }
  const FlatLayout& layout() const { return layout_; }

 private:
  const wire::JobSpec job_;
  const RunShape shape_{.samples = 23, .global_batch = 10, .slots = kSlots};
  const FlatLayout layout_ = make_flat_layout(two_layers(), kSlots);

 public:
  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  std::vector<std::unique_ptr<Collective>> collectives_;
};

inline const std::vector<std::vector<SlotRun>> kWorlds = {
    {{0, 5}}, {{0, 2}, {2, 5}}, {{0, 1}, {1, 4}, {4, 5}}, {{0, 5}, {5, 5}}};

inline SkipSet some_skips() {
  SkipSet skips;
  skips.add(1, 0, 2);
  skips.add(3, 0, kSlots);  // a whole step
  return skips;
}

}  // namespace lockstep::driver_world
