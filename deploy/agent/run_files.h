// The small files of a run directory that several processes read (DESIGN, section 2).
// Thread-safety: free functions without state.
#pragma once

#include <sys/types.h>

#include <string>

#include "comm/base/status.h"
#include "comm/net/address.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

// What coordinator.json says of the coordinator that wrote it; it may be dead by now.
struct CoordinatorFile {
  pid_t pid = 0;
  std::string run_id;
  rpc::Address control;
  rpc::Address http;
};

// kNoInput when there is none yet; kBadData when it is damaged.
Result<CoordinatorFile> read_coordinator_file(const std::string& run_dir);

// kNoInput when it is not there; kBadData when it is damaged.
Result<wire::JobSpec> read_job_spec(const std::string& run_dir);
Result<wire::DataFacts> read_data_facts(const std::string& run_dir);

Status write_message(const std::string& path, const google::protobuf::MessageLite& message);

}  // namespace lockstep
