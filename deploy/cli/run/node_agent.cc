#include "deploy/cli/run/node_agent.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "comm/base/json_logger.h"
#include "comm/environment/standard_streams.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "deploy/agent/agent.h"
#include "deploy/agent/allocator.h"
#include "deploy/agent/process.h"

namespace lockstep {
namespace {

// A name that was given by hand may hold anything.
std::string file_name_of(std::string node) {
  std::replace(node.begin(), node.end(), '/', '_');
  return node;
}

std::string log_node_of(const NodeAgent& node) {
  return node.has_plain_logs ? "" : file_name_of(node.node);
}

std::string log_name_of(const NodeAgent& node) {
  if (!node.name.empty()) return node.name;
  const std::string log_node = log_node_of(node);
  return log_node.empty() ? "agent" : "agent-" + log_node;
}

// As tests/unit/metrics/fake_nvml.cc names its GPUs.
std::string uuid_of_stand_in(uint32_t number) {
  const std::string digits = std::to_string(number);
  return std::string(32 - digits.size(), '0') + digits;
}

Result<AgentOptions> options_of(const NodeAgent& node, const wire::JobSpec& job, Logger& logger) {
  AgentOptions options;
  options.run_dir = node.run_dir;
  options.node = node.node;
  options.workers = node.workers > 0 ? node.workers : job.cluster().workers();
  options.first_local_rank = node.first_local_rank;
  options.agents_here = node.agents_here;
  options.own_gpus = node.own_gpus;
  options.log_node = log_node_of(node);
  options.stop_delay_ms = node.stop_delay_ms;
  options.grace_ms = int64_t{1000} * job.cluster().grace_s();
  options.max_crashes = job.cluster().max_crashes();
  options.max_preemptions = job.cluster().max_preemptions();
  options.leave_ms = leave_ms_of(job);
  LOCKSTEP_ASSIGN_OR_RETURN(options.worker, worker_launch(job, sibling_program(""), std::getenv));
  LOCKSTEP_ASSIGN_OR_RETURN(options.preload, allocator_library(job.cluster().malloc()));
  options.coordinator_program = sibling_program("lockstep-coordinator");
  if (const char* library = std::getenv("LOCKSTEP_NVML_LIBRARY")) options.nvml_library = library;
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.token, rpc::TokenFile::open(rundir::file_in(node.run_dir, rundir::kToken), logger));
  LOCKSTEP_ASSIGN_OR_RETURN(options.tls, rpc::open_tls(job.comm().tls(), logger));
  options.job = job;
  options.uses_gpus = job.cluster().device() == "cuda";
  LOCKSTEP_ASSIGN_OR_RETURN(options.metadata, metadata_service());
  if (!node.is_supervised) LOCKSTEP_RETURN_IF_ERROR(check_machine_stays(options.metadata));
  // For tests: looks come this often, and the places have GPUs of a stand-in, by number.
  if (const char* look_ms = std::getenv("LOCKSTEP_TEST_GPU_LOOK_MS")) {
    options.uses_gpus = true;
    options.gpu_look_ms = std::max(1L, std::strtol(look_ms, nullptr, 10));
    options.gpu_of_number = uuid_of_stand_in;
  }
  // Else the log goes to stderr by itself.
  if (node.is_quiet)
    options.tell = [](const std::string& what) { print_error("lockstep: %s\n", what.c_str()); };
  return options;
}

}  // namespace

Result<NodeAgentEnd> run_node_agent(const NodeAgent& node, StopSignals* held) {
  const auto job = read_job_spec(node.run_dir);
  if (job.status().code() == Code::kConfig) return job.status();  // others may write there
  if (!job.is_ok())
    return Status(job.status().code(),
                  "no run is prepared in " + node.run_dir + " on " + node.node + " (" +
                      job.status().message() +
                      "); give --run-dir the directory of the run itself, which all nodes must "
                      "share, and check that it is mounted here");
  std::filesystem::create_directories(rundir::file_in(node.run_dir, rundir::kLogs));
  const std::string name = log_name_of(node);
  // An agent belongs to no rank and no generation.
  const auto context = [run = job->job()] { return LogContext{run, {}, 0, {}}; };
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Logger> logger,
                            open_json_logger(rundir::log_in(node.run_dir, name + ".log.jsonl"),
                                             name, !node.is_quiet, context));
  LOCKSTEP_ASSIGN_OR_RETURN(AgentOptions options, options_of(node, *job, *logger));
  Agent agent(std::move(options), *logger);
  if (held != nullptr) held->release();
  const int code = agent.run();
  return NodeAgentEnd{code, agent.heard_goodbye(), agent.was_stopped()};
}

}  // namespace lockstep
