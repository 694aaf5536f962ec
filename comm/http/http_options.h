// How a job's processes serve HTTP (metrics.listen).
//
// On loopback they serve in the clear, to every user of the machine. Beyond loopback all processes
// of the run serve with the certificate of comm.tls and the token of RUN_DIR/http_token: the
// coordinator at metrics.listen, the others on their machine's address in comm.network.
//
// Thread-safety: free functions without state.
#pragma once

#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/http/http_call.h"
#include "comm/http/http_server.h"
#include "comm/run/job/job.pb.h"

namespace lockstep::http {

// In metrics.listen this host stands for the address in comm.network: "network:9400".
inline constexpr char kNetworkHost[] = "network";

// True if the job serves HTTP beyond loopback. False for an address that does not parse.
bool is_served_beyond_loopback(const wire::JobSpec& job);

// The options of an agent or a worker, with any free port. Errors: the errors of the token's file
// and of comm.network.
Result<HttpServer::Options> http_options(const wire::JobSpec& job, const std::string& run_dir,
                                         std::shared_ptr<rpc::TlsIdentity> tls, Logger& logger);

// For the coordinator: at metrics.listen.
Result<HttpServer::Options> coordinator_http_options(const wire::JobSpec& job,
                                                     const std::string& run_dir,
                                                     std::shared_ptr<rpc::TlsIdentity> tls,
                                                     Logger& logger);

// The TLS and token that a caller of the run's coordinator needs.
Result<Access> http_access(const wire::JobSpec& job, const std::string& run_dir);

}  // namespace lockstep::http
