// How a job wants its HTTP to be served (metrics.listen).
//
// On loopback: in the clear, everybody on the machine may ask. Beyond it: all processes of the run,
// the coordinator at metrics.listen and the others on their machine's address in comm.network, with
// the certificate of comm.tls and the token of RUN_DIR/http_token.
//
// Thread-safety: free functions without state.
#pragma once

#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/http/http_get.h"
#include "comm/http/http_server.h"
#include "comm/wire/job.pb.h"

namespace lockstep::http {

// Stands for the address in comm.network, in metrics.listen: "network:9400".
inline constexpr char kNetworkHost[] = "network";

// Whether it is served beyond loopback. An address that cannot be understood is not.
bool is_served_beyond_loopback(const wire::JobSpec& job);

// For an agent or a worker: any free port. Errors: those of the token's file and of comm.network.
Result<HttpServer::Options> http_options(const wire::JobSpec& job, const std::string& run_dir,
                                         std::shared_ptr<rpc::TlsIdentity> tls, Logger& logger);

// For the coordinator: at metrics.listen.
Result<HttpServer::Options> coordinator_http_options(const wire::JobSpec& job,
                                                     const std::string& run_dir,
                                                     std::shared_ptr<rpc::TlsIdentity> tls,
                                                     Logger& logger);

// What who asks the coordinator of a run needs.
Result<Access> http_access(const wire::JobSpec& job, const std::string& run_dir);

}  // namespace lockstep::http
