// Trains on a GPU, for tests: its modules, jobs with every feature, runs over loopback.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/engine/loopback_world.h"
#include "worker/engine/gpu_environment.h"
#include "worker/torch/device/open_gpu.h"

namespace lockstep::testing {

inline constexpr Step kSteps = 9;
inline constexpr uint32_t kBlock = 32;        // tokens of a sequence
inline constexpr uint32_t kVocabulary = 200;  // no multiple of the padding of logits
inline constexpr uint64_t kBucketBytes = 4096;

// In a bundle the module lies beside this program, else in its build directory.
inline std::string module_path() {
  const std::string beside = device_module_path();
  return std::filesystem::exists(beside) ? beside : LOCKSTEP_DEVICE_MODULE;
}

// One for the process, because LibTorch's CUDA library is loaded only once, even if that fails.
inline const Status& gpu_status() {
  static const Status status = [] {
    wire::JobSpec job = small_job("mlp");
    job.mutable_cluster()->set_device("cuda");
    LOCKSTEP_RETURN_IF_ERROR(prepare_gpu_environment(job));
    return open_gpu(job, module_path(), /*local_rank=*/0).status();
  }();
  return status;
}

// Skips, with the reason, if there is no GPU.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_status().is_ok()) GTEST_SKIP() << gpu_status().message();
  }
};

struct Devices {
  explicit Devices(uint32_t ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto module = open_device_module(module_path(), rank);
      EXPECT_TRUE(module.is_ok()) << module.status().message();
      own.push_back(std::move(module).value());
      modules.push_back(own.back().get());
    }
  }
  std::vector<std::unique_ptr<DeviceModule>> own;
  std::vector<DeviceModule*> modules;
};

inline wire::JobSpec job_of(const std::string& model) {
  wire::JobSpec job = model == "gpt2" ? small_gpt2(kBlock) : small_job(model);
  job.mutable_optimizer()->set_clip_norm(0.5);
  if (model == "gpt2") {
    job.mutable_model()->set_n_embd(64);
    job.mutable_model()->set_dropout(0.1);
  } else {
    job.mutable_model()->set_dropout(0.25);
    job.mutable_model()->set_batch_norm(true);
  }
  return job;
}

// The last step of an epoch is short. A slot of mlp keeps two samples, over which it normalises.
inline std::unique_ptr<data::Dataset> data_of(const std::string& model) {
  return model == "gpt2" ? make_text(60, kBlock, kVocabulary)
                         : make_patterns(model == "mlp" ? 88 : 83);
}

}  // namespace lockstep::testing
