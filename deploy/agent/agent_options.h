// What an agent (agent.h) is told at its start. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/base/limits.h"
#include "comm/run/job/job.pb.h"
#include "comm/tls/run_token.h"
#include "comm/tls/tls_identity.h"
#include "deploy/agent/cloud/cloud_watch.h"
#include "deploy/agent/gpu_watch.h"
#include "deploy/agent/worker_launch.h"
#include "metrics/node/nvml_api.h"

namespace lockstep {

struct AgentOptions {
  std::string run_dir;
  std::string node;
  uint32_t workers = 1;
  uint32_t first_local_rank = 0;  // worker_slots.h
  uint32_t agents_here = 1;
  uint32_t own_gpus = 0;
  std::string log_node = {};
  int64_t stop_delay_ms = 0;        // from a stop signal to the workers' SIGTERM: time for the
                                    // coordinator, which got the signal too, to stop all together
  int64_t grace_ms = 60'000;        // from then to SIGKILL
  int64_t leave_ms = 10'000;        // from Goodbye to SIGKILL
  int64_t absent_wait_ms = 10'000;  // without workers, for a coordinator that never came
  int64_t stopped_wait_ms = 3'000;  // a coordinator stays this long after its last Goodbye
  uint32_t max_crashes = 0;         // restarts of one worker within limits::kRestartWindowMs
  uint32_t max_preemptions = 0;     // the same, after it alone was told to go
  WorkerLaunch worker;
  std::string preload = {};                   // the library of cluster.malloc; empty: none
  std::string coordinator_program;            // path of lockstep-coordinator
  std::string nvml_library = nvml::kLibrary;  // tells about this machine's GPUs
  bool uses_gpus = false;                     // its workers compute on some
  int64_t gpu_look_ms = limits::kGpuLookMs;
  GpuOfNumber gpu_of_number = gpu_of_driver;
  MetadataService metadata = {};  // no cloud: the agent asks nothing
  // Repeats a line of the agent's log to the person at the console if no other process can; may be
  // empty.
  std::function<void(const std::string&)> tell = {};
  rpc::Token token;
  std::shared_ptr<rpc::TlsIdentity> tls;  // null: control is in the clear
  wire::JobSpec job;
};

}  // namespace lockstep
