#include "tests/unit/engine/loopback_world.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "comm/base/prng.h"
#include "comm/collectives/bucket_plan.h"
#include "data/dataset/memory_dataset.h"
#include "data/open/open_dataset.h"
#include "tests/support/state_of.h"
#include "tests/unit/engine/late_collective.h"

namespace lockstep::testing {

std::unique_ptr<data::Dataset> make_patterns(uint32_t samples, uint32_t side, uint32_t classes) {
  Prng noise(7);
  const data::SampleShape shape{1, side, side};
  std::vector<uint8_t> pixels;
  std::vector<uint32_t> labels;
  for (uint32_t i = 0; i < samples; ++i) {
    const uint32_t label = i < classes ? i : static_cast<uint32_t>(noise.below(classes));
    labels.push_back(label);
    for (uint64_t p = 0; p < shape.elements(); ++p) {
      const uint64_t pattern = stream_value(label, p) % 120;
      pixels.push_back(static_cast<uint8_t>(pattern + noise.below(120)));
    }
  }
  return std::move(data::make_memory_dataset(shape, std::move(pixels), std::move(labels))).value();
}

std::unique_ptr<data::Dataset> make_text(uint32_t samples, uint32_t block, uint32_t vocab) {
  constexpr const char* kWords[] = {"the ", "rank ", "sums ", "slots "};
  Prng chance(7);
  std::string text;
  while (text.size() < size_t{samples} * block + 1) text += kWords[chance.below(4)];
  text.resize(size_t{samples} * block + 1);
  std::string path = (std::filesystem::temp_directory_path() / "lockstep-text-XXXXXX").string();
  const int fd = ::mkstemp(path.data());
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::close(fd);
  wire::DatasetSpec spec;
  spec.set_path(path);
  spec.set_format("text");
  auto dataset = data::open_dataset(spec, data::Split::kTrain, "", {}, {block, vocab});
  std::filesystem::remove(path);  // it stays mapped
  EXPECT_TRUE(dataset.is_ok()) << dataset.status().message();
  return std::move(dataset).value();
}

wire::JobSpec small_job(const std::string& model, const std::string& precision) {
  wire::JobSpec job;
  job.set_seed(11);
  job.mutable_model()->set_name(model);
  wire::TrainSpec* train = job.mutable_train();
  train->set_global_batch(20);
  train->set_slots(4);
  train->set_threads_per_worker(1);
  train->set_eval_batch(16);
  train->set_precision(precision);
  train->set_loss_scale(65536);
  train->set_loss_scale_growth(2);
  train->set_loss_scale_growth_every(2000);
  train->set_loss_scale_backoff(0.5);
  job.mutable_data()->add_transforms("normalize");
  job.mutable_data()->set_prefetch_batches(2);
  wire::OptimizerSpec* optimizer = job.mutable_optimizer();
  optimizer->set_name("adamw");
  optimizer->set_lr(1e-3);
  optimizer->set_beta1(0.9);
  optimizer->set_beta2(0.999);
  optimizer->set_eps(1e-8);
  optimizer->set_weight_decay(0.01);
  job.mutable_schedule()->set_name("constant");
  return job;
}

wire::JobSpec small_gpt2(uint32_t block, const std::string& precision) {
  wire::JobSpec job = small_job("gpt2", precision);
  job.mutable_data()->clear_transforms();  // they are for images
  wire::ModelSpec* model = job.mutable_model();
  model->set_n_layer(2);
  model->set_n_head(2);
  model->set_n_embd(16);
  model->set_block(block);
  return job;
}

std::vector<SlotRun> even_runs(uint32_t slots, uint32_t ranks) {
  std::vector<SlotRun> runs;
  for (uint32_t r = 0; r < ranks; ++r) runs.push_back({slots * r / ranks, slots * (r + 1) / ranks});
  return runs;
}

std::string state_bytes(Engine& engine, bool with_optimizer) {
  std::string bytes;
  for (const StateTensor& t : testing::state_of(engine)) {
    if (!with_optimizer && t.section == StateSection::kOptimizer) continue;
    bytes.append(reinterpret_cast<const char*>(t.data), t.bytes);
  }
  return bytes;
}

TrainResult train(const wire::JobSpec& job, const data::Dataset& dataset,
                  const std::vector<SlotRun>& runs, Step steps, uint64_t bucket_bytes,
                  const SkipSet& skips) {
  LoopbackWorld world(job, dataset, runs, bucket_bytes);
  world.skips = skips;
  world.begin_generation(steps);
  return world.train_to(steps);
}

void expect_same_bits(const wire::JobSpec& job, const data::Dataset& dataset, Step steps) {
  const TrainResult one = train(job, dataset, even_runs(4, 1), steps);
  ASSERT_EQ(one.losses.size(), steps);
  for (const double loss : one.losses) EXPECT_TRUE(std::isfinite(loss));
  for (const uint32_t ranks : {2u, 3u, 4u}) {
    const TrainResult other = train(job, dataset, even_runs(4, ranks), steps, 4096);
    EXPECT_EQ(other.losses, one.losses) << ranks << " ranks";
    EXPECT_TRUE(other.state == one.state) << ranks << " ranks";
  }
}

std::vector<SparedParameter> find_spared(wire::JobSpec job, const data::Dataset& dataset) {
  wire::OptimizerSpec* optimizer = job.mutable_optimizer();
  optimizer->set_name("sgd");
  optimizer->set_lr(0.1);
  optimizer->set_weight_decay(0.5);
  std::vector<SparedParameter> found;
  std::vector<std::string> decayed;
  for (const bool spare : {false, true}) {
    optimizer->set_spare_vectors(spare);
    LoopbackWorld world(job, dataset, even_runs(4, 2));
    world.begin_generation(1);
    world.train_to(1);
    for (const StateTensor& t : testing::state_of(world.engine(0))) {
      if (t.section != StateSection::kParameter) continue;
      std::string bytes(reinterpret_cast<const char*>(t.data), t.bytes);
      if (spare) {
        found.push_back({t.name, t.shape.size(), bytes != decayed[found.size()]});
      } else {
        decayed.push_back(std::move(bytes));
      }
    }
  }
  return found;
}

Result<std::unique_ptr<Engine>> make_engine(const wire::JobSpec& job, const data::Dataset& train,
                                            const data::Dataset* eval, DeviceModule* module) {
  const auto make_buffer = [](const BufferLayout& layout, uint32_t regions) {
    return Result<std::unique_ptr<GradientBuffer>>(make_plain_buffer(layout, regions));
  };
  return Engine::create(job, train, eval, job.train().slots(), make_buffer, module);
}

LoopbackWorld::LoopbackWorld(const wire::JobSpec& job, const data::Dataset& train,
                             std::vector<SlotRun> runs, uint64_t bytes, const data::Dataset* eval,
                             const std::vector<DeviceModule*>& modules)
    : bucket_bytes(bytes), runs_(std::move(runs)) {
  for (size_t r = 0; r < runs_.size(); ++r) {
    auto engine = make_engine(job, train, eval, modules.empty() ? nullptr : modules[r]);
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    engines_.push_back(std::move(engine).value());
  }
}

LoopbackWorld::LoopbackWorld(const wire::JobSpec& job,
                             const std::vector<const data::Dataset*>& train,
                             std::vector<SlotRun> runs, uint64_t bytes)
    : bucket_bytes(bytes), runs_(std::move(runs)) {
  for (const data::Dataset* own : train) {
    auto engine = make_engine(job, *own);
    EXPECT_TRUE(engine.is_ok()) << engine.status().message();
    engines_.push_back(std::move(engine).value());
  }
}

void LoopbackWorld::connect_devices() {
  std::vector<GradientBuffer*> buffers;
  for (auto& engine : engines_) buffers.push_back(engine->device_buffer().value());
  // The reducers first let go of what the generation before holds.
  for (auto& engine : engines_) engine->end_generation();
  devices_.clear();
  for (auto& collective : make_loopback(generation_, buffers))
    devices_.push_back(std::make_unique<LateCollective>(
        std::move(collective), [this, rank = static_cast<uint32_t>(devices_.size())] {
          if (on_enqueued) on_enqueued(rank);
        }));
}

void LoopbackWorld::begin_generation(uint64_t total_steps, const GateOf& gate_of,
                                     const Wrap& wrap) {
  std::vector<GradientBuffer*> buffers;
  for (auto& engine : engines_) buffers.push_back(&engine->gradient_buffer());
  auto before = std::exchange(collectives_, make_loopback(++generation_, buffers));
  if (wrap) {
    for (auto& collective : collectives_) collective = wrap(std::move(collective), buffers);
  }
  if (connects_devices) connect_devices();
  const uint64_t elements = buffers[0]->layout().elements;
  auto bounds = plan_buckets(engines_[0]->tensor_bounds(), elements,
                             bucket_bytes == 0 ? elements * sizeof(float) : bucket_bytes);
  ASSERT_TRUE(bounds.is_ok()) << bounds.status().message();
  for (uint32_t r = 0; r < ranks(); ++r) {
    GenerationView view;
    view.generation = generation_;
    view.collective = collectives_[r].get();
    if (connects_devices) view.devices = devices_[r].get();
    view.slot_runs = runs_;
    view.bucket_bounds = bounds.value();
    view.total_steps = total_steps;
    view.skips = skips;
    if (!traces.empty()) view.trace = traces[r];
    if (r == 0) view.note = [this](const std::string& what) { notes.push_back(what); };
    view.keeps_inputs = keeps_inputs;
    if (wants_switch) view.wants_switch = [this, r] { return wants_switch(r); };
    const Status status = engines_[r]->begin_generation(view, gate_of ? gate_of(r) : StepGate{});
    ASSERT_TRUE(status.is_ok()) << status.message();
  }
}

template <typename T>
std::vector<Result<T>> LoopbackWorld::on_all(Result<T> (Engine::*call)()) {
  std::vector<std::optional<Result<T>>> results(ranks());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks(); ++r)
    threads.emplace_back([&, r] { results[r] = (*engines_[r].*call)(); });
  for (std::thread& thread : threads) thread.join();
  std::vector<Result<T>> out;
  for (auto& result : results) out.push_back(std::move(*result));
  return out;
}

std::vector<Result<StepOutcome>> LoopbackWorld::step_all() {
  return on_all(&Engine::step);
}

std::vector<Result<wire::EvalReport>> LoopbackWorld::evaluate_all() {
  return on_all(&Engine::evaluate);
}

TrainResult LoopbackWorld::train_to(Step steps) {
  while (engines_[0]->applied_steps() < steps) {
    const auto outcomes = step_all();
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(outcome.is_ok()) << outcome.status().message();
      if (!outcome.is_ok()) return result_;
      EXPECT_EQ(outcome->record.common_hash(), outcomes[0]->record.common_hash());
    }
    result_.losses.push_back(outcomes[0]->record.loss());
    result_.common_hashes.push_back(outcomes[0]->record.common_hash());
  }
  result_.state = state_bytes(*engines_[0], true);
  result_.weights = state_bytes(*engines_[0], false);
  for (auto& engine : engines_) EXPECT_EQ(state_bytes(*engine, true), result_.state);
  return result_;
}

}  // namespace lockstep::testing
