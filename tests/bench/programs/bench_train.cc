// Samples per second of the training engine alone: no coordinator, no records, no checkpoints.
//
//   bench_train --data DIR --model mlp --global-batch 128 --ranks 2 --steps 2000
//   bench_train --data TEXT --model gpt2 --size d12 --block 128 --global-batch 4 --ranks 2
//   bench_train ... --bare     the same model in a plain LibTorch loop on one rank: the yardstick
//
// Ranks are processes that meet over the host backend. Prints one JSON object.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "data/open/job_sample_cut.h"
#include "data/open/open_dataset.h"
#include "tests/bench/programs/bare_loop.h"
#include "tests/bench/programs/rank_processes.h"
#include "tests/bench/programs/train_options.h"
#include "tests/bench/programs/train_rank.h"
#include "worker/engine/gpu_environment.h"
#include "worker/model/gpt2_parts.h"
#include "worker/torch/device/open_gpu.h"

namespace lockstep::bench {

wire::JobSpec make_job(const TrainOptions& options) {
  wire::JobSpec job;
  job.set_seed(1);
  job.mutable_model()->set_name(options.model);
  if (options.model == "gpt2") {
    job.mutable_model()->set_size(options.size);
    job.mutable_model()->set_block(options.block);
    resolve_gpt2(job.mutable_model());
  } else {
    job.mutable_data()->add_transforms("normalize");
  }
  job.mutable_data()->set_prefetch_batches(4);
  job.mutable_train()->set_global_batch(options.global_batch);
  job.mutable_train()->set_slots(options.slots > 0 ? options.slots : options.ranks);
  job.mutable_train()->set_threads_per_worker(1);
  job.mutable_train()->set_eval_batch(250);
  job.mutable_train()->set_precision(options.precision);
  job.mutable_cluster()->set_device(options.device);
  job.mutable_comm()->set_numerics(options.numerics);
  job.mutable_train()->set_loss_scale(65536);  // PyTorch's defaults, also below
  job.mutable_train()->set_loss_scale_growth(2);
  job.mutable_train()->set_loss_scale_growth_every(2000);
  job.mutable_train()->set_loss_scale_backoff(0.5);
  wire::OptimizerSpec* optimizer = job.mutable_optimizer();
  optimizer->set_name(options.optimizer);
  optimizer->set_lr(options.optimizer == "sgd" ? 0.05 : 1e-3);
  optimizer->set_momentum(0.9);
  optimizer->set_beta1(0.9);
  optimizer->set_beta2(0.999);
  optimizer->set_eps(1e-8);
  optimizer->set_weight_decay(0.01);
  job.mutable_schedule()->set_name("constant");
  return job;
}

Result<std::unique_ptr<data::Dataset>> open_training_data(const TrainOptions& options,
                                                          const wire::JobSpec& job) {
  wire::DatasetSpec spec;
  spec.set_path(options.data);
  spec.set_format("auto");
  return data::open_dataset(spec, data::Split::kTrain, options.cache, {}, data::sample_cut(job));
}

namespace {

void print(const TrainOptions& options, const TrainReport& r) {
  const auto steps = static_cast<double>(r.steps);
  std::printf(
      "{\"samples_per_second\": %.1f, \"step_us\": %.1f, \"loss\": %.9g, \"ranks\": %u, "
      "\"data_us\": %.1f, \"forward_us\": %.1f, \"backward_us\": %.1f, \"communication_us\": %.1f, "
      "\"optimizer_us\": %.1f, \"other_us\": %.1f}\n",
      steps * static_cast<double>(options.global_batch) / r.seconds, r.seconds / steps * 1e6,
      r.loss, options.ranks, r.phases.data_wait_us() / steps, r.phases.forward_us() / steps,
      r.phases.backward_us() / steps, r.phases.communication_us() / steps,
      r.phases.optimizer_us() / steps, r.phases.other_us() / steps);
}

// The GPU, if the options ask for one, lasts as long as the measurement.
Result<TrainReport> measure(const TrainOptions& options) {
  std::unique_ptr<DeviceModule> gpu;
  if (options.device == "cuda") {
    if (options.ranks > 1) return Status(Code::kUsage, "--device cuda measures one rank");
    const wire::JobSpec job = make_job(options);
    LOCKSTEP_RETURN_IF_ERROR(prepare_gpu_environment(job));
    LOCKSTEP_ASSIGN_OR_RETURN(gpu, open_gpu(job, device_module_path(), 0));
  }
  return options.bare ? run_bare_loop(options, gpu.get()) : run_ranks(options, gpu.get());
}

int run(const TrainOptions& options) {
  auto report = measure(options);
  if (!report.is_ok()) {
    std::fprintf(stderr, "bench_train: %s\n", report.status().message().c_str());
    return exit_code(report.status());
  }
  print(options, report.value());
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::TrainOptions options;
  CLI::App app("Samples per second of the training engine");
  app.add_option("--data", options.data, "directory of IDX files; for gpt2 text")->required();
  app.add_option("--cache", options.cache, "for inflated files")
      ->default_val((std::filesystem::temp_directory_path() / "lockstep-bench-cache").string());
  app.add_option("--model", options.model, "mlp, cnn, resnet18, resnet50 or gpt2");
  app.add_option("--size", options.size, "of gpt2: d4 to d48");
  app.add_option("--block", options.block, "of gpt2: tokens of a sequence");
  app.add_option("--device", options.device, "cpu, or cuda: then one rank");
  app.add_option("--numerics", options.numerics, "exact or fast");
  app.add_option("--precision", options.precision, "fp32, bf16 or fp16");
  app.add_option("--optimizer", options.optimizer, "adamw or sgd");
  app.add_option("--global-batch", options.global_batch, "samples a step over all ranks");
  app.add_option("--ranks", options.ranks, "processes");
  app.add_option("--slots", options.slots, "0: as many as ranks");
  app.add_option("--steps", options.steps, "timed steps");
  app.add_option("--warmup-steps", options.warmup_steps, "steps before");
  app.add_option("--bucket-mb", options.bucket_mb, "MiB of gradients a bucket");
  app.add_flag("--bare", options.bare, "a plain LibTorch loop instead of the engine");
  CLI11_PARSE(app, argc, argv);
  return lockstep::bench::run(options);
}
