// One blocking HTTP POST, to a server that is not ours.
//
// It does not follow redirects: they are results like any other answer, so a token reaches only the
// intended server. In the clear it posts to this machine only.
//
// Thread-safety: a free function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/http/http_get.h"

namespace lockstep::http {

struct Post {
  rpc::Address address;  // in numbers
  std::string host;      // the name that the server's certificate has to be for
  std::string path;      // with the query. REQUIRES: no control characters in path and access.token
  std::string content_type;
  std::string body;
  Access access = {};
};

// Errors, `timeout_ms` and `limit_bytes` (of the answer) as in http_get().
Result<GetResult> http_post(const Post& post, int64_t timeout_ms, size_t limit_bytes);

}  // namespace lockstep::http
