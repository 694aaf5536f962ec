#include "worker/engine/gpu_environment.h"

#include <cstdlib>

#include "comm/net/network.h"

namespace lockstep {

bool may_use_nccl(const wire::JobSpec& job) {
  const std::string& backend = job.comm().backend();
  return job.cluster().device() == "cuda" && (backend == "nccl" || backend == "auto");
}

std::vector<EnvironmentSetting> gpu_environment(const wire::JobSpec& job,
                                                const std::string& interface,
                                                const std::string& nccl_log) {
  const wire::CommSpec& comm = job.comm();
  std::vector<EnvironmentSetting> settings;
  // cuBLAS reads these when it is first used: with other workspaces it may add in another order,
  // and one node's settings are not another's.
  if (comm.numerics() != "fast") {
    settings.push_back({"CUBLAS_WORKSPACE_CONFIG", ":4096:8", true});
    for (const char* name :
         {"CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE", "TORCH_BLAS_PREFER_CUBLASLT"})
      settings.push_back({name, std::nullopt, true});
  }
  // To load a kernel at its first launch may wait for every running kernel, including NCCL's, which
  // waits for a peer that waits for this launch.
  if (comm.backend() == "nccl" || comm.backend() == "auto") {
    settings.push_back({"CUDA_MODULE_LOADING", "EAGER"});
    settings.push_back({"NCCL_DEBUG", "WARN"});
    if (!nccl_log.empty()) settings.push_back({"NCCL_DEBUG_FILE", nccl_log});
  }
  const bool is_closed = !comm.trusted_network();
  settings.push_back({"NCCL_SOCKET_IFNAME", "=" + interface, is_closed});
  settings.push_back({"NCCL_RAS_ENABLE", "0", is_closed});
  if (is_closed) {
    settings.push_back({"NCCL_NET", "Socket", true});  // else adapters and plug-ins come first
    settings.push_back({"NCCL_COMM_ID", std::nullopt, true});  // a fixed address to meet at
  } else if (!comm.nccl_hca().empty()) {
    settings.push_back({"NCCL_IB_HCA", comm.nccl_hca(), true});
  }
  return settings;
}

void apply_environment(const std::vector<EnvironmentSetting>& settings) {
  for (const EnvironmentSetting& setting : settings) {
    if (setting.value)
      ::setenv(setting.name.c_str(), setting.value->c_str(), setting.replaces ? 1 : 0);
    else
      ::unsetenv(setting.name.c_str());
  }
}

Status prepare_gpu_environment(const wire::JobSpec& job, const std::string& nccl_log) {
  if (job.cluster().device() != "cuda") return Status::ok();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string interface,
      rpc::open_data_interface(job.comm().network(), job.comm().trusted_network()));
  apply_environment(gpu_environment(job, interface, nccl_log));
  return Status::ok();
}

}  // namespace lockstep
