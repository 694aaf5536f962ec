// One HTTP request over a connection of its own, as http_get and http_post send it. Internal.
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
  std::string host;      // whom the certificate has to be for
  std::string request;   // the whole, of HTTP/1.0: the answer is never chunked
  std::shared_ptr<const rpc::TlsContext> tls = {};  // null: in the clear
};

// Blocks. Errors as in http_get.h.
Result<GetResult> http_call(const Call& call, int64_t timeout_ms, size_t limit_bytes);

// The line that shows a token; empty without one.
std::string authorization_line(const std::string& token);

}  // namespace lockstep::http
