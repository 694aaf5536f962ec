// One HTTP request over a connection of its own, for http_get and http_post. Internal.
//
// Thread-safety: a free function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/http/get_result.h"
#include "comm/net/address.h"
#include "comm/tls/tls_context.h"

namespace lockstep::http {

struct Call {
  rpc::Address address;  // in numbers
  std::string host;      // the certificate has to be for this host
  std::string request;   // the whole request, in HTTP/1.0, so that the answer is never chunked
  std::shared_ptr<const rpc::TlsContext> tls = {};  // null: in the clear
};

// Blocks. Errors as in http_get.h.
Result<GetResult> http_call(const Call& call, int64_t timeout_ms, size_t limit_bytes);

// The header line that shows a token; empty without a token.
std::string authorization_line(const std::string& token);

}  // namespace lockstep::http
