#include "worker/process/open_devices.h"

#include <cstdlib>
#include <utility>

#include "worker/process/tried_comm.h"

namespace lockstep {
namespace {

std::unique_ptr<DeviceComm> try_devices(const DevicesWanted& wanted, DeviceCommOptions options) {
  TriedCommParts parts;
  parts.module = &wanted.module;
  parts.clock = &wanted.clock;
  parts.reserve = [&engine = wanted.engine] { return engine.device_buffer(); };
  parts.release = [&engine = wanted.engine] { engine.drop_device_buffer(); };
  parts.options = std::move(options);
  if (const auto identity = identify_gpu(wanted.gpu); identity.is_ok()) parts.gpu = *identity;
  parts.notes_directory = wanted.notes_directory;
  parts.note = [&logger = wanted.logger](const std::string& what) {
    logger.info("nccl_trial", what);
  };
  return make_tried_comm(std::move(parts));
}

}  // namespace

Status check_whole_gpu(const GpuIdentity& gpu) {
  if (!gpu.is_slice) return Status::ok();
  return {Code::kConfig, "GPU " + gpu.pci + " (UUID " + gpu.uuid +
                             ") is a MIG slice, and comm.backend nccl sums between whole GPUs: set "
                             "comm.backend: host, or auto, which takes NCCL only if a trial sums "
                             "right, or turn MIG off (nvidia-smi -mig 0)"};
}

// NCCL takes a GPU once. Whether another worker has this one, only the coordinator
// (coordinator/decide/fit.cc) or all workers together (device_trial.h) can say: a launcher may show
// each worker its own GPU alone.
Result<std::unique_ptr<DeviceComm>> open_devices(const DevicesWanted& wanted) {
  const wire::CommSpec& comm = wanted.job.comm();
  DeviceCommOptions options{.is_exact = comm.numerics() != "fast", .on_stuck = wanted.on_stuck};
  if (comm.backend() == "auto") return try_devices(wanted, std::move(options));
  if (comm.backend() != "nccl") return std::unique_ptr<DeviceComm>();
  if (const auto identity = identify_gpu(wanted.gpu); identity.is_ok())
    LOCKSTEP_RETURN_IF_ERROR(check_whole_gpu(*identity));
  LOCKSTEP_ASSIGN_OR_RETURN(GradientBuffer* const buffer, wanted.engine.device_buffer());
  LOCKSTEP_ASSIGN_OR_RETURN(auto devices, wanted.module.open_comm(*buffer, std::move(options)));
  wanted.logger.info("nccl",
                     "gradients go between GPUs over NCCL, which neither authenticates nor "
                     "encrypts; NCCL_SOCKET_IFNAME is " +
                         std::string(std::getenv("NCCL_SOCKET_IFNAME")));
  return devices;
}

}  // namespace lockstep
