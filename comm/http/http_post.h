// One blocking HTTP POST, to a server that is none of ours.
//
// Redirects are not followed: they are results like any other answer, so a token never goes to
// anybody but who was meant. In the clear it goes to this machine only.
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
  std::string host;      // by which it is called: its certificate has to be for that
  std::string path;  // with the query. REQUIRES: of path and access.token, no control characters
  std::string content_type;
  std::string body;
  Access access = {};
};

// Errors as of http_get(); `timeout_ms` and `limit_bytes` (of the answer) likewise.
Result<GetResult> http_post(const Post& post, int64_t timeout_ms, size_t limit_bytes);

}  // namespace lockstep::http
