// One blocking HTTP request over a connection of its own: GET by command line tools that ask a
// coordinator, POST to a server that is not ours.
//
// It goes to the given address and through no proxy: in the clear on this machine only, to other
// machines over TLS. It does not follow redirects: they are results like any other answer, so a
// token reaches only the intended server.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "comm/net/address.h"
#include "comm/tls/tls_context.h"

namespace lockstep::http {

struct Access {
  std::shared_ptr<const rpc::TlsContext> tls = {};  // null: in the clear
  std::string token = {};
};

// kUnavailable if no server answers, kTimeout after `timeout_ms` in all. kRefused for an answer
// that is no HTTP or larger than `limit_bytes`, or if the certificate is not valid. kConfig for an
// address beyond this machine without TLS. Any status code is a result, not an error.
Result<HttpAnswer> http_get(const rpc::Address& address, const std::string& path,
                            int64_t timeout_ms, const Access& access = {},
                            size_t limit_bytes = limits::kHttpAnswerBytes);

struct Post {
  rpc::Address address;  // in numbers
  std::string host;      // the name that the server's certificate has to be for
  std::string path;      // with the query. REQUIRES: no control characters in path and access.token
  std::string content_type;
  std::string body;
  Access access = {};
};

// Errors, `timeout_ms` and `limit_bytes` (of the answer) as in http_get().
Result<HttpAnswer> http_post(const Post& post, int64_t timeout_ms, size_t limit_bytes);

}  // namespace lockstep::http
