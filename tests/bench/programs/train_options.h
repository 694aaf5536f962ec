// The command line of bench_train.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/run/job/job.pb.h"
#include "data/dataset/dataset.h"

namespace lockstep::bench {

struct TrainOptions {
  std::string data;
  std::string cache;
  std::string model = "mlp";
  std::string size = "d12";  // gpt2
  uint32_t block = 128;      // gpt2: tokens of a sequence
  std::string precision = "fp32";
  std::string device = "cpu";      // or cuda
  std::string numerics = "exact";  // or fast
  std::string optimizer = "adamw";
  uint64_t global_batch = 128;
  uint32_t ranks = 1;
  uint32_t slots = 0;  // 0: as many as ranks
  uint64_t steps = 1000;
  uint64_t warmup_steps = 50;
  double bucket_mb = 25;
  bool bare = false;
};

wire::JobSpec make_job(const TrainOptions& options);

Result<std::unique_ptr<data::Dataset>> open_training_data(const TrainOptions& options,
                                                          const wire::JobSpec& job);

}  // namespace lockstep::bench
