// The environment variables with which a process uses a GPU: cuBLAS's for exact numerics, and
// NCCL's, which keep NCCL on the networks that the job allows.
//
//   not trusted  NCCL's sockets stay on loopback, and NCCL uses no InfiniBand or RoCE adapter and
//                no network plug-in. The site's settings of the same variables are overwritten
//   trusted      (comm.trusted_network) sockets on the interface of comm.network, adapters of
//                comm.nccl_hca. A variable that the site has set stays, whatever it is, except
//                that comm.nccl_hca wins over NCCL_IB_HCA
//
// Exact numerics fix the variables that cuBLAS reads, whatever the site has set.
//
// Where NCCL may sum, the driver loads all kernels at the start (CUDA_MODULE_LOADING), unless the
// site has set the variable. That takes seconds, and memory of the GPU.
//
// NCCL writes its warnings to a file of the run directory (NCCL_DEBUG, NCCL_DEBUG_FILE), unless the
// site has set the variables, each for itself.
//
// NCCL's RAS service, which listens on a port of its own, is off unless a trusted site turns it on.
//
// Thread-safety: setenv races with getenv of other threads. So prepare_gpu_environment() is called
// before the process has a second thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

struct EnvironmentSetting {
  std::string name;
  std::optional<std::string> value;  // nothing: the variable is removed
  bool replaces = false;             // else it stays as the site has set it

  bool operator==(const EnvironmentSetting&) const = default;
};

// `interface`: of rpc::open_data_interface(). `nccl_log`: the value of NCCL_DEBUG_FILE; empty: NCCL
// writes to stdout.
std::vector<EnvironmentSetting> gpu_environment(const wire::JobSpec& job,
                                                const std::string& interface,
                                                const std::string& nccl_log = "");

// Whether NCCL may sum in this job.
bool may_use_nccl(const wire::JobSpec& job);

void apply_environment(const std::vector<EnvironmentSetting>& settings);

// Both, if the job computes on a GPU. kConfig if comm.network has no interface here.
Status prepare_gpu_environment(const wire::JobSpec& job, const std::string& nccl_log = "");

}  // namespace lockstep
