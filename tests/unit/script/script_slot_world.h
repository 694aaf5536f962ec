// A script that is a function, and the engine of its only worker, for tests of what passes between
// the two.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/unit/script/serve_desk.h"
#include "worker/script/script_engine.h"

namespace lockstep {

struct ScriptOptions {
  uint32_t turns = 1;
  bool has_late = true;  // the second parameter
  bool has_counts = true;
  uint64_t check_every = 0;
};

// A run of one worker with two slots of 4 samples, in turns of a batch.
class ScriptSlot : public ::testing::Test {
 protected:
  static constexpr uint64_t kElements = 3;
  using Script = std::function<void(const ls_order&, ls_reply&)>;

  explicit ScriptSlot(const ScriptOptions& options = {})
      : shape_{.samples = 80, .global_batch = 8, .slots = 2, .turns = options.turns},
        job_(job_of(options)),
        layout_(ScriptLayout::create({.parameters = {{"a", {kElements}, false},
                                                     {"b", {kElements}, options.has_late}},
                                      .statistics = {{"m", {1}, false}},
                                      .metrics = {"metric"},
                                      .has_counts = options.has_counts},
                                     2)
                    .value()),
        engine_(
            ScriptEngine::create({job_,
                                  shape_,
                                  order(),
                                  layout_,
                                  desk_,
                                  {"a=b"},
                                  std::vector<double>(options.turns, 0.125),
                                  {{.name = "", .samples = 4, .fingerprint = "e", .metrics = {}}},
                                  nullptr,
                                  [this](const ls_task& task, double loss) {
                                    losses_.emplace_back(task.slot, loss);
                                  }},
                                 [&](const BufferLayout& flat, uint32_t regions) {
                                   return Result(make_plain_buffer(flat, regions, layout_.room()));
                                 })
                .value()),
        lrs_(options.turns, 0.5) {}

  static wire::JobSpec job_of(const ScriptOptions& options) {
    wire::JobSpec job;
    job.mutable_train()->set_slots(2);
    job.mutable_train()->set_check_every(options.check_every);
    job.mutable_comm()->set_numerics("exact");
    return job;
  }
  static OrderSpec order() {
    return {.seed = 3, .fingerprint = "f", .samples = 80, .blocks = {}, .classes = 0, .parts = {}};
  }

  // The script makes these calls in a slot.
  Status samples(uint64_t count) { return engine_->has_samples(std::vector<uint64_t>(count, 0)); }
  Status take(uint32_t parameter, float value, uint64_t elements = kElements) {
    const std::vector<float> gradient(elements, value);
    return engine_->take(parameter, gradient.data(), DType::kF32, elements);
  }
  Status statistic() { return engine_->take_statistic(0, std::vector<float>(1, 1.0f)); }
  // Says all that a slot must say, with this gradient of the first parameter, or with none.
  void compute(std::optional<float> gradient = 1.0f) {
    EXPECT_TRUE(samples(4).is_ok());
    EXPECT_TRUE(engine_->backward_begins().is_ok());
    EXPECT_TRUE(!gradient || take(0, *gradient).is_ok());
    EXPECT_TRUE(statistic().is_ok());
  }
  // Reads the sums of a parameter, as the script does in an apply.
  std::vector<float> sums(size_t parameter) const {
    const float* begin = layout_.gradients().data() + layout_.parameter_begins()[parameter];
    return {begin, begin + kElements};
  }

  // A generation, in which `train` is called on the training thread.
  Status live(const Script& script, const std::function<Status()>& train) {
    std::thread python([&] { serve(script); });
    Status status = installs_ ? engine_->install_state({}, *installs_) : Status::ok();
    const auto collectives = make_loopback(1, {&engine_->gradient_buffer()});
    collective_ = collectives[0].get();
    view_.generation = 1;
    view_.collective = collective_;
    view_.slot_runs = {{0, 2}};
    const FlatLayout& flat = layout_.flat();
    view_.bucket_bounds = plan_buckets(flat.tensor_bounds(), flat.buffer.elements, 64).value();
    if (view_.total_steps == 0) view_.total_steps = 100;
    if (status.is_ok()) status = engine_->begin_generation(view_, gate_);
    if (status.is_ok()) status = train();
    engine_->end_generation();
    desk_.end({});
    python.join();
    return status;
  }
  // For `train`.
  Status step() {
    LOCKSTEP_ASSIGN_OR_RETURN(StepOutcome outcome, engine_->step());
    outcomes_.push_back(std::move(outcome));
    return Status::ok();
  }
  // Steps until one fails.
  Status run(Step steps, const Script& script) {
    view_.total_steps = steps;
    return live(script, [&] {
      Status status;
      for (Step t = 0; t < steps && status.is_ok(); ++t) status = step();
      return status;
    });
  }
  Status run(const std::function<void()>& script) {
    return run(1, [&](const ls_order& order, ls_reply&) {
      if (order.kind == LS_SLOT) script();
    });
  }

  const RunShape shape_;
  const wire::JobSpec job_;
  Desk desk_;
  ScriptLayout layout_;
  std::unique_ptr<ScriptEngine> engine_;
  std::vector<StepOutcome> outcomes_;
  std::vector<std::pair<uint32_t, double>> losses_;  // of the slots that were computed for a step

  GenerationView view_;  // of the next generation
  StepGate gate_;
  std::optional<Step> installs_;  // a state after so many steps, before the generation
  Collective* collective_ = nullptr;

  std::vector<double> lrs_;  // that the script replies
  double metric_ = 0;

 private:
  void serve(const Script& script) {
    serve_desk(desk_, [&](const ls_order& order, ls_reply& reply) {
      reply.count = 4;
      reply.metrics = &metric_;
      reply.lrs = lrs_.data();
      script(order, reply);
    });
  }
};

}  // namespace lockstep
