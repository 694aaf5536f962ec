#include "comm/http/http_options.h"

#include "comm/net/network.h"
#include "comm/run/directory/layout.h"
#include "comm/tls/tls_identity.h"

namespace lockstep::http {
namespace {

std::string token_path(const std::string& run_dir) {
  return rundir::file_in(run_dir, rundir::kHttpToken);
}

}  // namespace

bool is_served_beyond_loopback(const wire::JobSpec& job) {
  const auto address = rpc::parse_address(job.metrics().listen());
  return address.is_ok() && !rpc::is_loopback_host(address->host);
}

Result<HttpServer::Options> http_options(const wire::JobSpec& job, const std::string& run_dir,
                                         std::shared_ptr<rpc::TlsIdentity> tls, Logger& logger) {
  HttpServer::Options options;
  options.allowed_hosts.assign(job.metrics().hosts().begin(), job.metrics().hosts().end());
  if (!is_served_beyond_loopback(job)) return options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.address.host, rpc::own_address_in(job.comm().network()));
  LOCKSTEP_ASSIGN_OR_RETURN(options.token, rpc::TokenFile::open(token_path(run_dir), logger));
  options.tls = std::move(tls);
  return options;
}

Result<HttpServer::Options> coordinator_http_options(const wire::JobSpec& job,
                                                     const std::string& run_dir,
                                                     std::shared_ptr<rpc::TlsIdentity> tls,
                                                     Logger& logger) {
  LOCKSTEP_ASSIGN_OR_RETURN(HttpServer::Options options,
                            http_options(job, run_dir, std::move(tls), logger));
  const std::string own = std::move(options.address.host);
  LOCKSTEP_ASSIGN_OR_RETURN(options.address, rpc::parse_address(job.metrics().listen()));
  if (options.address.host == kNetworkHost) options.address.host = own;
  return options;
}

Result<Access> http_access(const wire::JobSpec& job, const std::string& run_dir) {
  Access access;
  if (!is_served_beyond_loopback(job)) return access;
  LOCKSTEP_ASSIGN_OR_RETURN(access.tls, rpc::TlsContext::load(job.comm().tls()));
  LOCKSTEP_ASSIGN_OR_RETURN(access.token, rpc::read_token_file(token_path(run_dir)));
  return access;
}

}  // namespace lockstep::http
