// The files of a run directory that several programs read (layout.h).
//
// Errors of every reader: kNoInput if the file is not there, kBadData if it is damaged, too large
// or not complete. The message names the file and what to do.
//
// Thread-safety: free functions without state. Writers replace a file atomically.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/net/address.h"
#include "comm/run/job/data_facts.pb.h"
#include "comm/run/job/job.pb.h"

namespace lockstep {

// For programs that may load what the job names: also kConfig if others may write to the directory
// (trust.h), before anything is read.
Result<wire::JobSpec> read_job_spec(const std::string& run_dir);

// For commands that show a run and load nothing that its job names. The run may be another user's.
Result<wire::JobSpec> job_spec_to_show(const std::string& run_dir);

Status write_job_spec(const std::string& run_dir, const wire::JobSpec& job);

// Without samples only if `open`: the run is a script's, and its workers have not told them yet.
Result<wire::DataFacts> read_data_facts(const std::string& run_dir);
Status write_data_facts(const std::string& run_dir, const wire::DataFacts& facts);

// The inputs with which a coordinator begins.
struct RunInputs {
  wire::JobSpec job;
  wire::DataFacts facts;
};
Result<RunInputs> read_run_inputs(const std::string& run_dir);     // as read_job_spec()
Result<RunInputs> run_inputs_to_show(const std::string& run_dir);  // as job_spec_to_show()

// The content of coordinator.json, about the coordinator that wrote it, which may be dead by now. A
// coordinator that starts again replaces the file.
struct CoordinatorFile {
  pid_t pid = 0;
  std::string run_id;
  rpc::Address control;
  rpc::Address http;
  uint64_t term = 0;
  int64_t started_wall_ms = 0;
};
Result<CoordinatorFile> read_coordinator_file(const std::string& run_dir);
Status write_coordinator_file(const std::string& run_dir, const CoordinatorFile& file);

}  // namespace lockstep
