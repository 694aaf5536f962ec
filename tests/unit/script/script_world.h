// Worlds of a script, for tests of its engine: in each rank a thread stands for Python, with a
// state of two parameters, a statistic, and a step counter. It computes in the host's memory, or on
// a device in plain memory (plain_module.h) by work that is as late as the device.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/prng.h"
#include "comm/collectives/bucket_plan.h"
#include "comm/collectives/loopback/loopback.h"
#include "tests/unit/engine/late_collective.h"
#include "tests/unit/engine/plain_module.h"
#include "tests/unit/script/serve_desk.h"
#include "worker/device/device_marks.h"
#include "worker/script/script_engine.h"

namespace lockstep {

inline constexpr uint32_t kSlots = 5;
inline constexpr RunShape kShape{.samples = 23, .global_batch = 10, .slots = kSlots};

inline wire::JobSpec job_of(uint64_t check_every) {
  wire::JobSpec job;
  job.set_seed(3);
  job.mutable_train()->set_check_every(check_every);
  job.mutable_train()->set_slots(kSlots);
  job.mutable_comm()->set_numerics("exact");
  return job;
}

inline OrderSpec order_spec() {
  return {.seed = 3,
          .fingerprint = "f",
          .samples = kShape.samples,
          .blocks = {},
          .classes = 0,
          .parts = {}};
}

// Stands for Python in one rank.
class FakeScript {
 public:
  // `module`: where it computes; null: in the host's memory.
  FakeScript(Desk& desk, ScriptEngine& engine, const ScriptLayout& layout,
             testing::PlainModule* module)
      : desk_(desk),
        engine_(engine),
        layout_(layout),
        module_(module),
        stream_(module == nullptr ? nullptr : module->make_stream()) {}

  void run() {
    serve_desk(desk_, [this](const ls_order& order, ls_reply& reply) { answer(order, reply); });
  }

  std::vector<float> weights = std::vector<float>(40, 1.0f);  // of both parameters
  std::vector<float> mean = std::vector<float>(4, 0.0f);
  uint64_t applied = 0;
  Generation generation = 0;  // that it lives in
  std::vector<ls_task> tasks;
  std::vector<float> used;  // of the last step
  std::vector<ls_order> applies;
  std::vector<double> metrics;  // of all steps
  ls_order asked_for_state{};
  std::optional<uint32_t> fails_in;        // a slot
  bool fails_to_install = false;           // once
  bool is_of_two_minds = false;            // other gradients when a slot is asked for again
  std::optional<uint32_t> leaves_out = 1;  // a parameter: no gradient in odd slots
  bool has_late = false;
  bool has_plain_loss = false;  // it does not depend on the weights, which a device may have later
  // Calls that it leaves out, on a device.
  bool forgets_writes_on = false, forgets_reads_on = false, forgets_has_read = false;

  // What the device still has to do is done.
  void finish() {
    if (module_ != nullptr) module_->finish_stream(stream_);
  }

 private:
  // Work of the script on its state: at once, or on its stream.
  void on_stream(std::function<void()> work) {
    if (module_ == nullptr) return work();
    module_->enqueue(stream_, std::move(work));
  }
  static void fail(ls_reply& reply) {
    reply.code = 65;
    reply.text = "a planted failure";
  }
  void answer(const ls_order& order, ls_reply& reply) {
    switch (order.kind) {
      case LS_SLOT:
        return compute(order, reply);
      case LS_APPLY:
        applies.push_back(order);
        metrics.push_back(order.metrics[0]);
        EXPECT_EQ(order.generation, generation);
        return apply(order, reply);
      case LS_STATE:
        asked_for_state = order;
        finish();
        return describe(reply);
      default:
        if (std::exchange(fails_to_install, false)) return fail(reply);
        finish();
        weights.assign(static_cast<float*>(order.tensors[0].data),
                       static_cast<float*>(order.tensors[0].data) + weights.size());
        applied = order.step;
        reply.lrs = &(lr_ = 0.25);
    }
  }

  void compute(const ls_order& order, ls_reply& reply) {
    const ls_task& task = order.task;
    tasks.push_back(task);
    if (fails_in && task.slot == *fails_in) return fail(reply);
    const EpochOrder epoch(order_spec(), task.epoch);
    std::vector<uint64_t> indices;
    for (uint64_t at = task.begin; at < task.end; ++at) indices.push_back(epoch.at(at));
    EXPECT_TRUE(engine_.has_samples(indices).is_ok());
    if (!engine_.backward_begins().is_ok()) return;
    const uint64_t key =
        stream_key({task.step, task.slot, is_of_two_minds && order.is_again ? 1u : 0u});
    float* const place = engine_.place().value();
    EXPECT_EQ(place != nullptr, module_ != nullptr);
    if (place != nullptr && !forgets_writes_on) {
      EXPECT_TRUE(engine_.writes_on(stream_).is_ok());
    }
    for (uint32_t p = 2; p-- > 0;) {
      if (leaves_out == p && task.slot % 2 == 1) continue;
      for (int times = 0; times < (has_late && p == 1 ? 2 : 1); ++times)
        give(p, key, place, /*is_first=*/times == 0);
    }
    give_statistic(static_cast<float>(task.slot) + 0.1f, place);
    metric_ = static_cast<double>(task.slot);
    reply.loss = (has_plain_loss ? 1.0 : static_cast<double>(weights[0])) * (task.slot + 1);
    reply.count = layout_.facts().has_counts ? task.slot + 1 : task.end - task.begin;
    reply.metrics = &metric_;
  }

  // Element i of the gradient of parameter p, by the weights that are there when it is computed.
  float gradient(uint32_t p, uint64_t key, uint64_t i) const {
    return weights[p * 20 + i] * static_cast<float>(stream_value(key, i) % 1'000'003);
  }
  void give(uint32_t p, uint64_t key, float* place, bool is_first) {
    const FlatTensor& at = layout_.flat().parameters[p];
    if (place == nullptr) {
      std::vector<float> made(at.elements);
      for (uint64_t i = 0; i < made.size(); ++i) made[i] = gradient(p, key, i);
      EXPECT_TRUE(engine_.take(p, made.data(), DType::kF32, made.size()).is_ok());
      return;
    }
    on_stream([this, p, key, is_first, to = place + at.begin, n = at.elements] {
      for (uint64_t i = 0; i < n; ++i)
        to[i] = is_first ? gradient(p, key, i) : to[i] + gradient(p, key, i);
    });
    EXPECT_TRUE(engine_.wrote(p, at.elements).is_ok());
  }
  void give_statistic(float value, float* place) {
    if (place == nullptr) {
      EXPECT_TRUE(engine_.take_statistic(0, std::vector<float>(4, value)).is_ok());
      return;
    }
    on_stream(
        [value, to = place + layout_.flat().statistics[0].begin] { std::fill_n(to, 4, value); });
    EXPECT_TRUE(engine_.wrote_statistic(0, 4).is_ok());
  }

  void apply(const ls_order& order, ls_reply& reply) {
    const float* const sums = order.device_sums;
    if (sums == nullptr) {
      change(layout_.gradients().data(), layout_.statistics().data(), 1, 1);
    } else {
      if (!forgets_reads_on) {
        EXPECT_TRUE(engine_.reads_on(stream_).is_ok());
      }
      on_stream([this, sums, factor = order.factor, slots = order.slots] {
        change(sums, sums + layout_.flat().statistics[0].begin, factor, static_cast<float>(slots));
      });
      if (!forgets_has_read) {
        EXPECT_TRUE(engine_.has_read(stream_).is_ok());
      }
    }
    used = layout_.used();
    ++applied;
    reply.lrs = &(lr_ = 0.5);
  }
  void change(const float* gradients, const float* statistics, float factor, float slots) {
    for (uint32_t p = 0; p < 2; ++p)
      for (uint64_t i = 0; i < 20; ++i)
        weights[p * 20 + i] -= 1e-8f * (gradients[layout_.parameter_begins()[p] + i] * factor);
    for (size_t i = 0; i < 4; ++i) mean[i] = statistics[i] / slots;
  }

  void describe(ls_reply& reply) {
    tensor_ = {.name = "w",
               .shape = shape_,
               .data = weights.data(),
               .bytes = weights.size() * sizeof(float),
               .dims = 1,
               .section = 0,
               .dtype = 0,
               .is_late = 0};
    reply.tensors = &tensor_;
    reply.tensor_count = 1;
  }

  Desk& desk_;
  ScriptEngine& engine_;
  const ScriptLayout& layout_;
  testing::PlainModule* const module_;
  void* const stream_;
  double metric_ = 0, lr_ = 0;
  ls_tensor tensor_{};
  const int64_t shape_[1] = {40};
};

struct Rank {
  // `is_alone`: it sums where the script's optimizer finds the gradients.
  Rank(const wire::JobSpec& job, bool is_alone, bool has_counts, bool has_late, bool has_device)
      : layout(ScriptLayout::create({.parameters = {{"a", {20}, false}, {"b", {4, 5}, has_late}},
                                     .statistics = {{"m", {4}, false}},
                                     .metrics = {"slot"},
                                     .has_counts = has_counts},
                                    kSlots)
                   .value()),
        module(has_device ? std::make_unique<testing::PlainModule>() : nullptr),
        engine(ScriptEngine::create({job,
                                     kShape,
                                     order_spec(),
                                     layout,
                                     desk,
                                     {"a=b"},
                                     {0.125},
                                     {},
                                     nullptr,
                                     {},
                                     module.get()},
                                    [&](const BufferLayout& flat, uint32_t regions) {
                                      return Result(make_plain_buffer(
                                          flat, regions, is_alone ? layout.room() : nullptr));
                                    })
                   .value()),
        script(desk, *engine, layout, module.get()) {
    if (module != nullptr) module->has_late_compute = true;
    script.has_late = has_late;
  }

  Desk desk;
  ScriptLayout layout;
  std::unique_ptr<testing::PlainModule> module;  // null: it computes in the host's memory
  std::unique_ptr<ScriptEngine> engine;
  FakeScript script;
  std::vector<StepOutcome> outcomes;
  Status last;
  std::vector<StateTensor> state;
};

struct WorldOptions {
  uint64_t check_every = 0;
  bool has_counts = false;
  bool has_late = false;
  bool has_plain_loss = false;
  bool has_devices = false;  // with a plain loss
};

class ScriptWorld {
 public:
  explicit ScriptWorld(const std::vector<SlotRun>& runs, WorldOptions options = {})
      : job_(job_of(options.check_every)), runs_(runs) {
    for (size_t r = 0; r < runs.size(); ++r)
      ranks.push_back(std::make_unique<Rank>(job_, runs.size() == 1, options.has_counts,
                                             options.has_late, options.has_devices));
    for (const auto& rank : ranks)
      rank->script.has_plain_loss = options.has_plain_loss || options.has_devices;
  }

  // A generation: up to each rank's first error, or `steps` more steps.
  struct Part {
    Step steps = 0;
    bool connects = false;  // the devices sum among themselves
    std::function<void()> before = {};
  };
  ScriptWorld& run(Step steps, bool connects = false) { return run({{steps, connects}}); }
  // Once: every rank with its two threads.
  ScriptWorld& run(const std::vector<Part>& parts) {
    std::vector<std::thread> scripts;
    for (const auto& rank : ranks) scripts.emplace_back([&rank = *rank] { rank.script.run(); });
    for (const Part& part : parts) {
      if (part.before) part.before();
      run_part(part);
    }
    for (const auto& rank : ranks) rank->desk.end({});
    for (std::thread& thread : scripts) thread.join();
    for (const auto& rank : ranks) rank->script.finish();
    return *this;
  }

  std::vector<uint64_t> hashes(size_t rank) const {
    std::vector<uint64_t> all;
    for (const StepOutcome& outcome : ranks[rank]->outcomes)
      all.push_back(outcome.record.common_hash());
    return all;
  }

  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  void run_part(const Part& part) {
    std::vector<GradientBuffer*> raw, on_devices;
    for (const auto& rank : ranks) raw.push_back(&rank->engine->gradient_buffer());
    const auto collectives = make_loopback(++generation_, raw);
    std::vector<std::unique_ptr<DeviceCollective>> devices(ranks.size());
    if (part.connects) {
      for (const auto& rank : ranks) on_devices.push_back(rank->engine->device_buffer().value());
      auto of_devices = make_loopback(generation_, on_devices);
      for (size_t r = 0; r < ranks.size(); ++r)
        devices[r] = std::make_unique<testing::LateCollective>(
            std::move(of_devices[r]), std::function<void()>(),
            [module = ranks[r]->module.get()] { (void)module->wait(kGradientsReached); });
    }
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->script.generation = generation_;
      threads.emplace_back([this, &rank = *ranks[r], collective = collectives[r].get(),
                            device = devices[r].get(), steps = part.steps] {
        rank.last = train(rank, *collective, device, steps);
        if (!rank.last.is_ok()) collective->abort();
        if (!rank.last.is_ok() && device != nullptr) device->abort();
        rank.engine->end_generation();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Status train(Rank& rank, Collective& collective, DeviceCollective* devices, Step steps) {
    GenerationView view;
    view.generation = generation_;
    view.collective = &collective;
    view.devices = devices;
    view.slot_runs = runs_;
    const FlatLayout& flat = rank.layout.flat();
    view.bucket_bounds = plan_buckets(flat.tensor_bounds(), flat.buffer.elements, 64).value();
    view.total_steps = rank.engine->applied_steps() + steps;
    view.is_writer = collective.rank() == 1;
    view.evaluated = {.step = 9, .loss = 0.5, .correct = 3, .samples = 4};
    LOCKSTEP_RETURN_IF_ERROR(rank.engine->begin_generation(view, {}));
    for (Step t = 0; t < steps; ++t) {
      LOCKSTEP_ASSIGN_OR_RETURN(StepOutcome outcome, rank.engine->step());
      rank.outcomes.push_back(std::move(outcome));
    }
    return Status::ok();
  }

  const wire::JobSpec job_;
  const std::vector<SlotRun> runs_;
  Generation generation_ = 0;
};

inline const std::vector<std::vector<SlotRun>> kWorlds = {
    {{0, 5}}, {{0, 2}, {2, 5}}, {{0, 1}, {1, 4}, {4, 5}}, {{0, 5}, {5, 5}}};

}  // namespace lockstep
