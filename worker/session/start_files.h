// What a worker reads from its run directory before it can speak to anyone.
//
// Errors: kNoInput when a file is not there, kBadData when it is damaged; messages name the path.
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/net/address.h"
#include "comm/wire/control.pb.h"
#include "comm/wire/job.pb.h"

namespace lockstep {

// DIR/job.pb, with the number of slots filled in where the job left it to the number of workers.
Result<wire::JobSpec> read_job(const std::string& run_dir);

// DIR/coordinator.json, which a restarted coordinator replaces.
struct CoordinatorAddress {
  std::string run_id;
  rpc::Address control;
};
Result<CoordinatorAddress> read_coordinator_address(const std::string& run_dir);

// kUsage, with the keys that differ, unless both are the same job.
Status check_same_job(const wire::JobSpec& ours, const wire::JobSpec& coordinators);

}  // namespace lockstep
