#include "deploy/cli/base/ask_http.h"

#include <nlohmann/json.hpp>

#include "comm/base/hash.h"
#include "comm/http/http_options.h"
#include "comm/http/http_proof.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/tls/run_token.h"

namespace lockstep {
namespace {

// A user who may not read the token cannot ask for the proof.
Status check_proof(const std::string& run_dir, const rpc::Address& address, int64_t timeout_ms) {
  const auto token = rpc::read_token_file(rundir::file_in(run_dir, rundir::kToken));
  if (!token.is_ok()) return Status::ok();
  const std::string random = random_bytes(http::kNonceDigits / 2);
  const std::string nonce =
      to_hex({reinterpret_cast<const uint8_t*>(random.data()), random.size()});
  const std::string path =
      std::string(http::kProofPath) + "?" + std::string(http::kNonceKey) + nonce;
  LOCKSTEP_ASSIGN_OR_RETURN(const http::HttpAnswer answer,
                            http::http_get(address, path, timeout_ms));
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool has_proof = answer.status == 200 && json.is_object() && json.contains("proof") &&
                         json["proof"].is_string();
  if (has_proof &&
      equal_constant_time(json["proof"].get<std::string>(), http::proof_of_token(*token, nonce)))
    return Status::ok();
  return {Code::kUnavailable, "the program at " + rpc::to_string(address) +
                                  " is not the coordinator of " + run_dir +
                                  ": it does not prove the run's token"};
}

}  // namespace

Result<http::HttpAnswer> ask_http(const std::string& run_dir, const std::string& path,
                                  int64_t timeout_ms) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CoordinatorFile file, read_coordinator_file(run_dir));
  http::Access access;
  if (!rpc::is_loopback_host(file.http.host)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const wire::JobSpec job, job_spec_to_show(run_dir));
    LOCKSTEP_ASSIGN_OR_RETURN(access, http::http_access(job, run_dir));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(check_proof(run_dir, file.http, timeout_ms));
  }
  return http::http_get(file.http, path, timeout_ms, access);
}

}  // namespace lockstep
