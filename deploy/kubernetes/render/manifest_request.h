// A user's request for a run on Kubernetes.
//
// Thread-safety: values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::k8s {

enum class Kind { kJobSet, kTrainJob, kMpiJob, kJob };

struct ManifestRequest {
  Kind kind = Kind::kJobSet;
  std::string name;
  std::string name_space;  // empty: the namespace of the user who applies it
  std::string image;
  std::string run_claim;   // a ReadWriteMany volume; the run directory is a folder of it
  std::string data_claim;  // empty: the data are in the image, or on the run's volume
  std::string queue;       // of Kueue, or of Volcano with that scheduler
  std::string scheduler;   // empty: the cluster's own
  std::string cpu;         // of each pod with workers
  std::string memory;      // empty: by its GPUs (memory_of_pod)
  uint32_t workers = 2;    // in all
  uint32_t gpus = 0;       // and workers, of each pod; 0: one worker, no GPU
  uint32_t grace_s = 60;
  bool enters_mpi = false;  // comm.backend: mpi
  std::string job_text;     // the job file, as it is
  bool is_script = false;   // and it is a script
  std::string module;       // of a package in the image, in place of a job file; empty: none
  std::string python;       // of the image, for a script; empty: the one that the image names
  std::vector<std::string> overrides;

  uint32_t workers_of_pod() const { return gpus == 0 ? 1 : gpus; }
  uint32_t pods() const { return workers / workers_of_pod(); }
  // While a checkpoint is written, a worker's state lies in the host's memory, in addition to
  // batches and to what NCCL shares in /dev/shm.
  std::string memory_of_pod() const {
    constexpr uint32_t kGibOfAGpu = 16;
    if (!memory.empty()) return memory;
    return std::to_string(gpus == 0 ? 4 : kGibOfAGpu * gpus) + "Gi";
  }
  // The name of the job file in the pods.
  std::string job_name() const { return is_script ? "train.py" : "job.yaml"; }
  std::string job_file() const { return "/etc/lockstep/" + job_name(); }
  bool has_job_file() const { return module.empty(); }
  bool has_volcano() const { return scheduler == "volcano"; }
};

// kUsage, naming the option and the remedy.
Status check(const ManifestRequest& request);

// "My shoes_2" -> "my-shoes-2"; empty if no character can stand in a name.
std::string name_from(const std::string& job);

}  // namespace lockstep::k8s
