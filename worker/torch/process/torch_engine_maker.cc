#include "worker/torch/process/torch_engine_maker.h"

#include <utility>

#include "comm/base/gpu/gpu_driver.h"
#include "comm/run/directory/layout.h"
#include "data/dataset/dataset.h"
#include "data/dataset/facts.h"
#include "data/open/job_sample_cut.h"
#include "data/view/run_data.h"
#include "worker/engine/memory_meter.h"
#include "worker/process/gpu_identity.h"
#include "worker/process/model_notes.h"
#include "worker/process/open_devices.h"
#include "worker/process/read_weights.h"
#include "worker/process/watch_far_data.h"
#include "worker/torch/device/open_gpu.h"

namespace lockstep {
namespace {

class TorchEngineMaker final : public EngineMaker {
 public:
  Result<MadeEngine> build(const EngineMakerHost& host) override;
  void has_trained() override;

 private:
  Status open_data(const EngineMakerHost& host);
  Result<uint64_t> measure_largest_slot(const EngineMakerHost& host);

  std::unique_ptr<data::Dataset> train_data_;
  std::unique_ptr<data::Dataset> eval_data_;
  std::unique_ptr<DeviceModule> gpu_;  // null: the CPU
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<DeviceComm> devices_;
  Logger* logger_ = nullptr;  // since build()
};

Status TorchEngineMaker::open_data(const EngineMakerHost& host) {
  const std::string cache = data::cache_directory(host.job.data(), host.options.run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(data::RunData opened, data::open_run_data(host.job, cache));
  train_data_ = std::move(opened.train);
  eval_data_ = std::move(opened.eval);
  watch_far_data(*train_data_, eval_data_.get(), cache, host);
  return Status::ok();
}

Result<uint64_t> TorchEngineMaker::measure_largest_slot(const EngineMakerHost& host) {
  if (host.job.train().global_batch() != 0) return uint64_t{0};
  const uint32_t sharing = host.job.comm().backend() == "nccl" ? 1 : host.options.workers_here;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto meter, make_meter(gpu_.get(), sharing));
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t largest,
                            engine_->largest_slot(*meter, host.options.workers_here));
  host.logger.info("largest_slot", "train.global_batch auto: the largest slot that fits here",
                   {{"samples", largest}});
  return largest;
}

Result<MadeEngine> TorchEngineMaker::build(const EngineMakerHost& host) {
  logger_ = &host.logger;
  const wire::JobSpec& job = host.job;
  uint32_t gpu = host.options.gpu;
  if (job.cluster().device() == "cuda") {  // before anything else asks LibTorch for devices
    if (!host.options.gpu_uuid.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(gpu, find_gpu(host.options.gpu_uuid));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(gpu_, open_gpu(job, device_module_path(), gpu));
  }
  LOCKSTEP_RETURN_IF_ERROR(open_data(host));
  // The last worker left owns every slot. Regions that are never used cost address space only.
  LOCKSTEP_ASSIGN_OR_RETURN(engine_,
                            Engine::create(job, *train_data_, eval_data_.get(), job.train().slots(),
                                           host.make_buffer, gpu_.get()));
  LOCKSTEP_RETURN_IF_ERROR(read_weights(job, host.options.run_dir, *engine_, host.logger));
  LOCKSTEP_RETURN_IF_ERROR(tell_model_notes(host.options.run_dir, *engine_, host.logger));
  if (gpu_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        devices_,
        open_devices({job, *gpu_, *engine_, host.clock, host.logger, gpu,
                      rundir::file_in(host.options.run_dir, rundir::kCache), host.on_stuck}));
  }
  MadeEngine made;
  made.engine = engine_.get();
  made.facts = data::make_data_facts(*train_data_, eval_data_.get());
  made.devices = devices_.get();
  LOCKSTEP_ASSIGN_OR_RETURN(made.largest_slot, measure_largest_slot(host));
  if (gpu_) made.gpu = identity_of_gpu(gpu);
  return made;
}

// NCCL blocks if it cannot end its work (D2), and here the process does not wait for it.
void TorchEngineMaker::has_trained() {
  devices_.reset();
  if (!gpu_) return;
  if (const auto peak = peak_device_bytes(*gpu_); peak.is_ok())
    logger_->info("gpu_memory", "peak GPU memory in use", {{"bytes", *peak}});
}

}  // namespace

std::unique_ptr<EngineMaker> torch_engine_maker() {
  return std::make_unique<TorchEngineMaker>();
}

}  // namespace lockstep
